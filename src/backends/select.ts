/**
 * Which provisioner runs this host's guests: one pure rule.
 *
 *   bound to the state → asked for by `--backend` → default of this platform → sole other one → refused, with what to type
 *
 * The state is bound to the backend that was chosen first. A pin that was lost is read back from the records, which name
 * their backend. While a VM is recorded the bond holds, because another backend must not act on VMs that it did not make;
 * where none is, `--backend` may change it.
 *
 * A default that this host is not fit for is passed over. One that is broken is not: the choice lasts as long as the VMs,
 * and must not hang on an accident. What is bound or asked for is never passed over.
 */
import type { HostOs } from '@eitri/core/contracts';
import type { CatalogEntry } from './plugin-catalog.js';

export interface Selection {
  readonly entry: CatalogEntry;
  /** Why this one, for the log. */
  readonly because: string;
}

/** What the records of this state say of their backends. */
export interface RecordedBackends {
  /** Lives that have a record, also those whose record can't be read. */
  readonly lives: number;
  /** The names in the records, each once. */
  readonly names: readonly string[];
}

export interface SelectionRequest {
  readonly entries: readonly CatalogEntry[];
  readonly os: HostOs;
  /** The backend that the state is bound to. */
  readonly pinned: string | undefined;
  /** `--backend`. */
  readonly asked: string | undefined;
  readonly recorded: RecordedBackends;
}

export type SelectionOutcome =
  { readonly ok: true; readonly selection: Selection } | { readonly ok: false; readonly why: string };

const DEFAULTS: Readonly<Record<HostOs, string>> = { linux: 'cloudhv', darwin: 'vfkit' };

export function selectBackend(request: SelectionRequest): SelectionOutcome {
  const { pinned, asked, recorded } = request;
  if (pinned !== undefined && asked !== undefined && asked !== pinned && recorded.lives === 0) {
    return named(request, asked, `--backend asked for it, and ${pinned}, to which this state was bound, has no VM`);
  }
  const [sole, another] = recorded.names;
  const bound = pinned ?? (another === undefined ? sole : undefined);
  if (bound !== undefined) {
    if (asked !== undefined && asked !== bound) {
      return refuse(
        `--backend ${asked}: this state directory is bound to ${bound}, whose VMs no other backend may touch; drop the flag, delete all VMs first, or use another --state-dir`,
      );
    }
    return named(request, bound, pinned === undefined ? 'its VMs are recorded' : 'the state directory is bound to it');
  }
  if (asked !== undefined) return named(request, asked, '--backend asked for it');
  if (recorded.lives > 0) {
    const whose =
      recorded.names.length === 0 ? 'no record can be read' : `records name ${recorded.names.join(' and ')}`;
    return refuse(
      `VMs are recorded (${recorded.lives}), but not which backend this state is bound to, and ${whose}: say which one goes on with --backend NAME`,
    );
  }
  return byDefault(request);
}

function byDefault({ entries, os }: SelectionRequest): SelectionOutcome {
  const provisioners = provisionersOf(entries);
  const preferred = DEFAULTS[os];
  const defaults = provisioners.filter((entry) => entry.manifest?.name === preferred);
  const usable = provisioners.filter((entry) => entry.refused === undefined);
  const names = [...new Set(usable.map((entry) => entry.manifest?.name ?? ''))].sort();
  const broken = defaults.find((entry) => entry.refused !== undefined && entry.unfit !== true);
  if (defaults.some((entry) => entry.refused === undefined))
    return sole(defaults, preferred, `it is the default on ${os}`);
  if (broken !== undefined) {
    const others = names.length === 0 ? '' : `, or choose another with --backend ${names.join('|')}`;
    return refuse(
      `${preferred}, the default on ${os}, is off (${broken.packageName}: ${broken.refused ?? ''}): put that right${others}`,
    );
  }
  const [unfit] = defaults;
  const passed =
    unfit === undefined ? `${preferred} is not installed` : `${preferred} can't be used: ${unfit.refused ?? ''}`;
  const [name, second] = names;
  if (name !== undefined && second === undefined) {
    return sole(provisioners, name, `${passed}, and it is the only other one`);
  }
  if (name !== undefined) {
    return refuse(`several backends qualify (${names.join(', ')}): choose one with --backend NAME`);
  }
  const install = `type: eitri-agent plugins install @eitri/plugin-${
    unfit === undefined ? `${preferred} (or @eitri/plugin-qemu, which asks for less)` : 'qemu'
  }`;
  return refuse(`no backend can run guests here: ${passed}${alsoOff(entries, defaults)}; ${install}`);
}

/** A backend of this name, which is never passed over. */
function named({ entries, recorded }: SelectionRequest, name: string, because: string): SelectionOutcome {
  const candidates = provisionersOf(entries).filter((entry) => entry.manifest?.name === name);
  const [off] = candidates;
  if (off === undefined) {
    const other = recorded.lives === 0 ? ', or choose another with --backend NAME' : '';
    return refuse(
      `backend ${name} is not installed (${because})${alsoOff(entries, [])}; type: eitri-agent plugins install @eitri/plugin-${name}${other}`,
    );
  }
  if (candidates.every((entry) => entry.refused !== undefined)) {
    return refuse(`backend ${name} (${because}) is off: ${off.packageName}: ${off.refused ?? ''}`);
  }
  return sole(candidates, name, because);
}

/** Two packages may offer one name; which of them made the VMs nobody could tell. */
function sole(entries: readonly CatalogEntry[], name: string, because: string): SelectionOutcome {
  const usable = entries.filter((entry) => entry.refused === undefined && entry.manifest?.name === name);
  const [entry, second] = usable;
  if (entry !== undefined && second === undefined) return { ok: true, selection: { entry, because } };
  const packages = usable.map(({ packageName }) => packageName).join(' and ');
  return refuse(
    `${packages} both offer the backend ${name}: remove one of them with "eitri-agent plugins uninstall PACKAGE"`,
  );
}

/** Packages that are off, and may be what is looked for. */
function alsoOff(entries: readonly CatalogEntry[], told: readonly CatalogEntry[]): string {
  return entries
    .filter((entry) => entry.refused !== undefined && entry.manifest?.kind !== 'network' && !told.includes(entry))
    .map(({ packageName, refused }) => `; ${packageName} is off: ${refused ?? ''}`)
    .join('');
}

const provisionersOf = (entries: readonly CatalogEntry[]): readonly CatalogEntry[] =>
  entries.filter((entry) => entry.manifest?.kind === 'provisioner');

const refuse = (why: string): SelectionOutcome => ({ ok: false, why });
