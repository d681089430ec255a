/**
 * Which provisioner runs this host's guests: one pure rule.
 *
 *   pinned → asked for by `--backend` → default of this platform → sole usable one → refused, with the command to type
 *
 * A default whose needs this host lacks is passed over; a pin, and what was asked for, never is.
 *
 * A pin is never changed here: another backend must not act on VMs that the pinned one made.
 */
import type { HostOs } from '@eitri/core/contracts';
import type { CatalogEntry } from './plugin-catalog.js';

export interface Selection {
  readonly entry: CatalogEntry;
  /** Why this one, for the log. */
  readonly because: string;
}

export interface SelectionRequest {
  readonly entries: readonly CatalogEntry[];
  readonly os: HostOs;
  /** The backend that the state is bound to. */
  readonly pinned: string | undefined;
  /** `--backend`. */
  readonly asked: string | undefined;
}

export type SelectionOutcome =
  { readonly ok: true; readonly selection: Selection } | { readonly ok: false; readonly why: string };

const DEFAULTS: Readonly<Record<HostOs, string>> = { linux: 'cloudhv', darwin: 'vfkit' };

export function selectBackend({ entries, os, pinned, asked }: SelectionRequest): SelectionOutcome {
  const provisioners = entries.filter((entry) => entry.manifest?.kind === 'provisioner');
  const byName = (name: string): CatalogEntry | undefined =>
    provisioners.find((entry) => entry.manifest?.name === name && entry.refused === undefined) ??
    provisioners.find((entry) => entry.manifest?.name === name);

  if (pinned !== undefined) {
    if (asked !== undefined && asked !== pinned) {
      return refuse(
        `--backend ${asked}: this state directory is bound to ${pinned}, whose VMs no other backend may touch; drop the flag, or use another --state-dir`,
      );
    }
    return named(byName(pinned), pinned, 'the state directory is bound to it');
  }
  if (asked !== undefined) return named(byName(asked), asked, '--backend asked for it');

  const preferred = DEFAULTS[os];
  const first = byName(preferred);
  if (first?.refused === undefined && first !== undefined) return choose(first, `it is the default on ${os}`);
  const usable = provisioners.filter((entry) => entry.refused === undefined);
  const [only, second] = usable;
  const passed =
    first?.refused === undefined ? `${preferred} is not installed` : `${preferred} can't be used: ${first.refused}`;
  if (only !== undefined && second === undefined) return choose(only, `${passed}, and it is the only other one`);
  if (only === undefined) {
    const others = provisioners.filter((entry) => entry !== first && entry.refused !== undefined);
    const broken = others.map((entry) => `; ${entry.packageName}: ${entry.refused ?? ''}`).join('');
    return refuse(
      `no backend can run guests here: ${passed}${broken}; type: eitri-agent plugins install @eitri/plugin-${first === undefined ? preferred : 'qemu'}`,
    );
  }
  const names = usable.map((entry) => entry.manifest?.name ?? '').sort();
  return refuse(`several backends qualify (${names.join(', ')}): choose one with --backend NAME`);
}

function named(entry: CatalogEntry | undefined, name: string, because: string): SelectionOutcome {
  if (entry === undefined) {
    return refuse(
      `backend ${name} is not installed (${because}); type: eitri-agent plugins install @eitri/plugin-${name}`,
    );
  }
  if (entry.refused !== undefined) return refuse(`backend ${name} can't be used: ${entry.refused}`);
  return choose(entry, because);
}

const choose = (entry: CatalogEntry, because: string): SelectionOutcome => ({
  ok: true,
  selection: { entry, because },
});
const refuse = (why: string): SelectionOutcome => ({ ok: false, why });
