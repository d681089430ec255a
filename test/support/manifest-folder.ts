/**
 * A folder of manifests and a desired store on real files, with a local control plane over them.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Clock, ControlPlaneHost, NewEvent } from '@eitri/core/contracts';
import { initFolder, LocalControlPlane } from '../../src/control/local/index.js';
import type { LocalControlPlaneOptions } from '../../src/control/local/local-control-plane.js';
import { FileDesiredStore } from '../../src/desired/index.js';
import { diskFiles } from '../../src/host/atomic-file.js';
import { SystemClock } from '../../src/host/clock.js';
import { CountedRandom, MemoryLogger } from './ports.js';
import { tempFolder } from './temp.js';

export const manifest = (name: string, spec = 'image: tiny'): string =>
  `# ${name}\napiVersion: eitri/v1\nkind: VirtualMachine\nmetadata:\n  name: ${name}\nspec:\n  ${spec}\n`;

/** A folder needs nothing of its agent: whatever it asks for is a mistake. */
const unasked = (): never => {
  throw new Error('a folder of manifests asked its host');
};
const host: ControlPlaneHost = { hello: unasked, report: unasked, onReport: unasked, openConsole: unasked };

export class ManifestFolder {
  readonly folder: string;
  readonly desiredPath: string;
  readonly log = new MemoryLogger();
  private readonly random = new CountedRandom();

  constructor() {
    const root = tempFolder();
    this.folder = join(root, 'manifests');
    this.desiredPath = join(root, 'desired.json');
    mkdirSync(this.folder);
  }

  readonly init = () => initFolder(this.folder, this.random);

  readonly put = (name: string, text: string): void => {
    writeFileSync(join(this.folder, name), text);
  };
  readonly text = (name: string): string => readFileSync(join(this.folder, name), 'utf8');
  readonly names = (sub = '.'): readonly string[] => readdirSync(join(this.folder, sub)).toSorted();

  readonly store = async (adopt = false): Promise<FileDesiredStore> => {
    const store = new FileDesiredStore(this.random, this.log, diskFiles, { path: this.desiredPath, adopt });
    await store.load();
    return store;
  };

  /** An agent's run over the folder. It stops with the test, or when told to. */
  readonly run = async (
    options: Partial<LocalControlPlaneOptions> & { readonly clock?: Clock; readonly adopt?: boolean } = {},
  ): Promise<Running> => {
    const store = await this.store(options.adopt);
    const events: NewEvent[] = [];
    const sink = { emit: (event: NewEvent): void => void events.push(event) };
    const plane = new LocalControlPlane(store, options.clock ?? new SystemClock(), this.log, sink, {
      folder: this.folder,
      agentUid: process.getuid?.() ?? 0,
      imageFolders: [],
      quietMs: 20,
      // Long: what a test sees came from the watcher.
      lookMs: 600_000,
      ...options,
    });
    const end = new AbortController();
    const ended = plane.run(host, end.signal);
    // Whoever awaits `ended` sees it; who does not must not fail for it twice.
    ended.catch(() => undefined);
    const stop = async (): Promise<void> => {
      end.abort();
      await ended.catch(() => undefined);
    };
    onTestFinished(stop);
    return { store, plane, events, ended, stop };
  };
}

export interface Running {
  readonly store: FileDesiredStore;
  readonly plane: LocalControlPlane;
  /** What the operator was told. */
  readonly events: readonly NewEvent[];
  readonly ended: Promise<void>;
  readonly stop: () => Promise<void>;
}

/** `web present, db vanished`: what is wanted, in words. */
export const wanted = (store: FileDesiredStore): string =>
  (store.current()?.lives ?? [])
    .map((life) => `${life.id} ${life.kind}`)
    .toSorted()
    .join(', ');

/** `web.yaml:3: message` */
export const issueLines = (store: FileDesiredStore): readonly string[] =>
  store.issues().map(({ source, line, message }) => `${source}${line === undefined ? '' : `:${line}`}: ${message}`);
