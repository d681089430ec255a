/**
 * A folder of manifests as the control plane: looks at it, tells the desired store what it says, edits it for the
 * operator.
 *
 *   out of contact ⇄ in contact     (each look decides: folder, marker and fence are fine, or they are not)
 *
 * Owns the looks: at a hint of the watcher, once the folder is quiet, and every fifteen seconds. Never decides what
 * becomes of a VM, and keeps no state of its own on disk. Out of contact nothing is missing: guests stay as they are.
 */
import {
  CLOCK,
  DESIRED_STORE,
  EVENT_SINK,
  LOGGER,
  type Clock,
  type ControlPlane,
  type ControlPlaneHost,
  type DesiredIssue,
  type DesiredStore,
  type EditOutcome,
  type EventSink,
  type Logger,
  type ManifestEditor,
  type PowerState,
  type VmId,
} from '@eitri/core/contracts';
import { errorLine, Semaphore } from '@eitri/core/kit';
import { join } from 'node:path';
import { inject, injectable } from 'tsyringe';
import { readAsked, type AskedFile, type AskedReading } from './asked-manifests.js';
import { notReadable } from './folder-check.js';
import { FolderEditor } from './folder-editor.js';
import { DELETED_FOLDER, FolderReader, type FolderReading } from './folder-reading.js';
import { FolderWatcher } from './folder-watcher.js';
import { folderWord, type Resolved } from './folder-word.js';
import { resolveManifest, type ManifestFileRules } from './manifest-files.js';
import type { TextDocument } from './manifest-text.js';
import { TroubleTeller } from './trouble-teller.js';

/** An editor's save is several events, and a `git pull` hundreds: wait until they end, but not for ever. */
const QUIET_MS = 200;
const MAX_QUIET_MS = 5000;
const LOOK_MS = 15_000;

export interface LocalControlPlaneOptions extends ManifestFileRules {
  readonly quietMs?: number;
  readonly lookMs?: number;
}

type LookOutcome =
  { readonly kind: 'accepted' } | { readonly kind: 'out'; readonly issue: DesiredIssue; readonly fatal: boolean };

@injectable()
export class LocalControlPlane implements ControlPlane, ManifestEditor {
  private readonly reader: FolderReader;
  private readonly editor: FolderEditor;
  /** Looks and edits, one at a time: an edit's own look must not see half of another. */
  private readonly serial = new Semaphore(1);
  private readonly teller: TroubleTeller;
  private owners: ReadonlyMap<VmId, string> = new Map();
  private lastTrouble: string | undefined;
  private heardOnce = false;
  private wake = new AbortController();

  constructor(
    @inject(DESIRED_STORE) private readonly desired: DesiredStore,
    @inject(CLOCK) private readonly clock: Clock,
    @inject(LOGGER) private readonly log: Logger,
    @inject(EVENT_SINK) events: EventSink,
    private readonly options: LocalControlPlaneOptions,
  ) {
    this.reader = new FolderReader(options.folder, () => desired.current());
    this.editor = new FolderEditor(options, this.reader);
    this.teller = new TroubleTeller(events, this.describe());
  }

  readonly describe = (): string => `local folder ${this.options.folder}`;

  readonly run = async (_host: ControlPlaneHost, signal: AbortSignal): Promise<void> => {
    const watcher = new FolderWatcher(this.log, () => this.wake.abort());
    try {
      const first = await this.look(signal, watcher);
      if (first.kind === 'out' && first.fatal) {
        throw notReadable(first.issue.source, first.issue.message);
      }
      for (;;) {
        if ((await this.hintOrTime(signal)) === 'time') watcher.retry();
        await this.look(signal, watcher);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      this.desired.setContact(false);
      await watcher.close();
    }
  };

  readonly setPower = (id: VmId, power: PowerState, signal: AbortSignal): Promise<EditOutcome> =>
    this.edited(signal, () => this.editor.setPower(id, power, signal));

  readonly remove = (id: VmId, signal: AbortSignal): Promise<EditOutcome> =>
    this.edited(signal, () => this.editor.remove(id, signal));

  readonly undelete = (id: VmId, signal: AbortSignal): Promise<EditOutcome> =>
    this.edited(signal, () => this.editor.undelete(id, signal));

  readonly write = (text: string, mode: 'create' | 'apply', signal: AbortSignal): Promise<EditOutcome> =>
    this.edited(signal, () => this.editor.write(text, mode, signal));

  /**
   * Reads manifests that stand in no folder as an edit would that applies them, and writes nothing: their specs, or a line
   * for each thing that is wrong with them.
   */
  readonly read = async (files: readonly AskedFile[], signal: AbortSignal): Promise<AskedReading> => {
    const release = await this.serial.acquire(signal);
    try {
      const reading = await this.reader.read(signal);
      const declared = reading.kind === 'read' ? reading.files : [];
      return await readAsked(files, declared, this.desired.current()?.lives ?? [], this.options);
    } finally {
      release();
    }
  };

  private async edited(signal: AbortSignal, work: () => Promise<EditOutcome>): Promise<EditOutcome> {
    const release = await this.serial.acquire(signal);
    try {
      return await work();
    } finally {
      try {
        // Also after a failure half-way: what is in the folder counts, not what was meant.
        await this.lookNow(signal);
      } finally {
        release();
      }
    }
  }

  /** Until there was a hint and quiet after it, or the time for the next look has come. */
  private async hintOrTime(signal: AbortSignal): Promise<'hint' | 'time'> {
    const { quietMs = QUIET_MS, lookMs = LOOK_MS } = this.options;
    if (!(await this.hinted(lookMs, signal))) return 'time';
    const endMs = this.clock.monotonicMs() + MAX_QUIET_MS;
    do this.wake = new AbortController();
    while ((await this.hinted(quietMs, signal)) && this.clock.monotonicMs() < endMs);
    return 'hint';
  }

  /** Whether a hint comes, or came, within this time. */
  private async hinted(ms: number, signal: AbortSignal): Promise<boolean> {
    try {
      await this.clock.sleep(ms, AbortSignal.any([signal, this.wake.signal]));
      return false;
    } catch (error) {
      signal.throwIfAborted();
      if (!this.wake.signal.aborted) throw error;
      return true;
    }
  }

  private async look(signal: AbortSignal, watcher: FolderWatcher): Promise<LookOutcome> {
    const release = await this.serial.acquire(signal);
    try {
      return await this.lookNow(signal, watcher);
    } finally {
      release();
    }
  }

  private async lookNow(signal: AbortSignal, watcher?: FolderWatcher): Promise<LookOutcome> {
    const outcome = await this.take(signal, watcher);
    // A start that is refused says so itself.
    if (outcome.kind === 'accepted' || !outcome.fatal || this.heardOnce) {
      this.teller.tell(outcome.kind === 'accepted', this.desired.issues());
    }
    this.heardOnce = true;
    return outcome;
  }

  private async take(signal: AbortSignal, watcher?: FolderWatcher): Promise<LookOutcome> {
    const reading = await this.reader.read(signal);
    if (reading.kind === 'out') {
      // What ran here before goes on, also when its disk is not mounted yet; a host with nothing to keep is told at once.
      return this.out(reading.issue, this.desired.current() === undefined);
    }
    const { folder } = this.options;
    await watcher?.arm(reading.identity, [folder, join(folder, DELETED_FOLDER)]);
    try {
      const refusal = await this.say(reading, signal);
      if (refusal !== undefined) return this.out({ source: folder, message: refusal }, true);
    } catch (error) {
      signal.throwIfAborted();
      this.log.error('manifests.accept.failed', { err: error });
      return this.out({ source: folder, message: errorLine(error) }, false);
    }
    this.desired.setContact(true);
    this.lastTrouble = undefined;
    return { kind: 'accepted' };
  }

  /** Tells the store what the folder says. Resolves with why it refused, or with nothing. */
  private async say(
    reading: Extract<FolderReading, { kind: 'read' }>,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const resolved = new Map<TextDocument, Resolved>();
    for (const { parsed, stats } of reading.files) {
      for (const document of parsed.kind === 'documents' ? parsed.documents : []) {
        const result = await resolveManifest(document, stats, this.options);
        if (result !== undefined) resolved.set(document, result);
      }
    }
    const lives = this.desired.current()?.lives ?? [];
    const { files, deleted, marker } = reading;
    const word = folderWord({ files, deleted, resolved, lives, owners: this.owners });
    const outcome = await this.desired.accept(
      {
        lineage: marker.lineage,
        epoch: marker.epoch,
        vms: [...word.specs.values()].map((spec) => ({ spec })),
        tombstones: word.tombstones.map((id) => ({ id })),
        unreadable: word.unreadable,
        issues: word.issues,
      },
      signal,
    );
    if (outcome.kind === 'refused') return outcome.why;
    this.owners = word.owners;
    if (outcome.changed) {
      this.log.info('manifests.accepted', {
        revision: outcome.revision,
        vms: word.specs.size,
        issues: word.issues.length,
      });
    }
    return undefined;
  }

  private out(issue: DesiredIssue, fatal: boolean): LookOutcome {
    this.desired.setContact(false);
    // The store tells of a fence or a disk that stopped it by itself.
    const told = this.desired.issues().some(({ message }) => message.includes(issue.message));
    if (!told) this.desired.setContact(false, issue);
    // Once for each trouble: it is looked at again every fifteen seconds, for days.
    if (this.lastTrouble !== issue.message) this.log.warn('manifests.out-of-contact', { ...issue });
    this.lastTrouble = issue.message;
    return { kind: 'out', issue, fatal };
  }
}
