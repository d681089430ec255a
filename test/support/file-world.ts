/**
 * A world whose agents keep what they know as real ones do: `FileStateStore` and `FileDesiredStore` over a simulated file
 * system, which outlives them, and loses what was not synced when the machine loses power.
 */
import { never } from '@eitri/conformance';
import type {
  AcceptOutcome,
  DesiredSnapshot,
  DesiredState,
  DesiredStore,
  StateStore,
  VmId,
  VmPaths,
  VmRecord,
  VmUid,
} from '@eitri/core/contracts';
import { isVmUid } from '@eitri/core/kit';
import { FileDesiredStore } from '../../src/desired/index.js';
import { AtomicFiles } from '../../src/host/atomic-file.js';
import { FileStateStore, parseStored, recordFormat, StatePaths } from '../../src/state/index.js';
import type { Prng } from './history/prng.js';
import { CountedRandom } from './ports.js';
import { SimFiles } from './sim-files.js';
import { silent } from './quiet.js';
import { AnyWorld, type Stores, type WorldOptions } from './world.js';

export class FileWorld extends AnyWorld {
  readonly files = new SimFiles(this.host);
  readonly paths = new StatePaths({ stateDir: '/state', runDir: '/run/eitri-agent' });
  /** Lives whose end was said to the desired store. */
  readonly settled = new Set<VmUid>();
  /** Counts what changed the desired state beside the words of a control plane. */
  otherChanges = 0;
  /** Of the agent of now; of the last one while there is none. */
  private desired: FileDesiredStore | undefined;
  private readonly random = new CountedRandom();
  private readonly parsed = new WeakMap<Buffer, VmRecord>();
  private readonly atomicFiles = new AtomicFiles(this.files);

  constructor(options: WorldOptions = {}) {
    super(options);
    this.files.onCall = (call) => (this.diesAt(call) ? never() : undefined);
  }

  protected async openStores(): Promise<Stores> {
    const state = new FileStateStore(this.paths, silent, this.atomicFiles);
    const desired = new FileDesiredStore(this.random, silent, this.atomicFiles, {
      path: this.paths.desired,
      adopt: false,
    });
    await state.prepare();
    await desired.load();
    this.desired = desired;
    return { state: this.watchedState(state), desired: this.watchedDesired(desired) };
  }

  /** What the agent of now holds for wanted. */
  current(): DesiredState | undefined {
    return this.desired?.current();
  }

  setContact(inContact: boolean): void {
    this.desired?.setContact(inContact);
  }

  /** A control plane speaks to the agent. Never answered when that agent dies. */
  accept(snapshot: DesiredSnapshot): Promise<AcceptOutcome> {
    const { desired } = this;
    if (desired === undefined) throw new Error('no agent is there to hear');
    return this.calls.around('desiredStore.accept', undefined, () =>
      desired.accept(snapshot, new AbortController().signal),
    );
  }

  /** The operator lets go what the brake holds. */
  releaseHold(): Promise<readonly VmId[]> {
    return this.besides(async () => (await this.desired?.releaseHold(new AbortController().signal)) ?? []);
  }

  /** The record as it is read from the disk now; undefined where there is none that can be read. */
  record(uid: VmUid): VmRecord | undefined {
    const bytes = this.files.bytes(this.paths.record(uid));
    if (bytes === undefined) return undefined;
    const known = this.parsed.get(bytes) ?? recordIn(bytes);
    if (known !== undefined) this.parsed.set(bytes, known);
    return known;
  }

  /** All lives that have a folder. */
  recorded(): readonly VmUid[] {
    return this.files.names(this.paths.vms).filter((name) => isVmUid(name));
  }

  pathsOf(uid: VmUid): VmPaths {
    return this.paths.pathsOf(uid);
  }

  /** The machine goes down, with or without the time to write what is unwritten, and comes back. No agent runs. */
  reboot(powerCut?: Prng): void {
    this.host.reboot();
    if (powerCut === undefined) this.files.shutDown();
    else this.files.powerCut(powerCut);
  }

  /** Counted when it begins and when it ends: a word that is said meanwhile meets it. */
  private async besides<T>(change: () => Promise<T>): Promise<T> {
    this.otherChanges++;
    try {
      return await change();
    } finally {
      this.otherChanges++;
    }
  }

  private watchedState(store: FileStateStore): StateStore {
    const { calls } = this;
    return {
      loadRecords: (signal) => calls.around('stateStore.loadRecords', undefined, () => store.loadRecords(signal)),
      writeRecord: (record) => {
        // Copied before the first wait: what the caller changes later is not what it wrote.
        const written = structuredClone(record);
        return calls.around('stateStore.writeRecord', record.uid, () => store.writeRecord(written));
      },
      removeVm: (uid, signal) => calls.around('stateStore.removeVm', uid, () => store.removeVm(uid, signal)),
      pathsOf: store.pathsOf,
    };
  }

  private watchedDesired(store: FileDesiredStore): DesiredStore {
    return {
      current: store.current,
      issues: store.issues,
      inContact: store.inContact,
      onChange: store.onChange,
      accept: store.accept,
      setContact: store.setContact,
      settled: (uid) =>
        this.calls.around('desiredStore.settled', uid, () => {
          this.settled.add(uid);
          return this.besides(() => store.settled(uid));
        }),
    };
  }
}

function recordIn(bytes: Buffer): VmRecord | undefined {
  try {
    return parseStored(recordFormat, bytes.toString('utf8'));
  } catch {
    return undefined;
  }
}
