/**
 * Taking the guests' network down, on an operator's word: never from under a guest, and never where it can't be told
 * whether one runs.
 */
import type { LoadedRecord, Provisioner } from '@eitri/core/contracts';
import { EXIT, exitError } from '@eitri/core/kit';
import { instanceOf, isAlive } from '@eitri/core/reconcile';
import type { FileStateStore, GuestCidrFile } from '../state/index.js';
import type { GuestNetwork } from './guest-network.js';

export interface TeardownPorts {
  readonly network: Pick<GuestNetwork, 'teardown'>;
  readonly platform: { readonly backend: string; readonly provisioner: Pick<Provisioner, 'observe'> };
  readonly store: Pick<FileStateStore, 'loadRecords'>;
  readonly cidrFile: Pick<GuestCidrFile, 'forget'>;
}

/**
 * Rejects, with whom it would cut off, while a guest runs or may run. Where no VM has a record any more, the subnet is
 * forgotten too: the next start may choose another. Answers whether it was.
 */
export async function tearDown(ports: TeardownPorts, signal: AbortSignal): Promise<{ readonly forgotten: boolean }> {
  const loaded = await ports.store.loadRecords(signal);
  const found = await Promise.all(loaded.map((entry) => holdsOn(entry, ports.platform, signal)));
  const why = found.filter((sentence) => sentence !== undefined);
  if (why.length > 0) {
    throw exitError(
      EXIT.tryAgain,
      `the guests' network stays: ${why.join(', ')}; stop the guests first ("eitri-agent vm stop NAME" while an agent runs)`,
    );
  }
  await ports.network.teardown(signal);
  const forgotten = loaded.length === 0;
  if (forgotten) await ports.cidrFile.forget();
  return { forgotten };
}

/** Why this VM keeps the network up; undefined: it has no VMM. */
async function holdsOn(
  entry: LoadedRecord,
  { backend, provisioner }: TeardownPorts['platform'],
  signal: AbortSignal,
): Promise<string | undefined> {
  if (entry.kind === 'unreadable') return `${entry.uid} may run (its record can't be read)`;
  const { record } = entry;
  if (record.backend !== backend) return `${record.id} may run (it is the backend ${record.backend}'s)`;
  const observed = await provisioner.observe(instanceOf(record), signal);
  if (isAlive(observed)) return `${record.id} runs`;
  return observed.state === 'unknown' ? `${record.id} may run (${observed.why})` : undefined;
}
