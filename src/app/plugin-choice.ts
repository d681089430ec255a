/**
 * Which backends a start would choose, as far as whoever asks may see: the state directory is read if it can be.
 */
import { readFile } from 'node:fs/promises';
import type { HostOs } from '@eitri/core/contracts';
import { selectBackend, selectNetwork } from '../backends/index.js';
import type { CatalogEntry, RecordedBackends, SelectionOutcome } from '../backends/index.js';
import { readRecordedBackends } from '../state/recorded-backends.js';
import { StatePaths } from '../state/state-paths.js';
import type { Places } from './places.js';

export interface Choice {
  /** What the state is bound to, as far as that can be read. */
  readonly pins: Pins;
  readonly backend: SelectionOutcome;
  /** Undefined: guests have no network plugin. */
  readonly network: SelectionOutcome | undefined;
}

export interface Pins {
  readonly backend?: string;
  readonly network?: string;
}

export interface Asked {
  readonly backend: string | undefined;
  readonly network: string | undefined;
}

export async function previewChoice(
  entries: readonly CatalogEntry[],
  places: Places,
  os: HostOs,
  asked: Asked,
): Promise<Choice> {
  const paths = new StatePaths(places);
  const pins = await readPins(paths.control);
  const pinned = pins.backend;
  const recorded = await readRecordedBackends(paths, { names: pinned === undefined }).catch((): RecordedBackends => ({
    lives: 0,
    names: [],
  }));
  const bound = { pinned: pins.network, lives: recorded.lives };
  return {
    pins,
    backend: selectBackend({ entries, os, pinned, asked: asked.backend, recorded }),
    // `user` has to be asked for at every start; whoever only looks need not.
    network: selectNetwork({
      entries,
      os,
      asked: asked.network ?? (pins.network === 'user' ? 'user' : undefined),
      ...bound,
    }),
  };
}

/** A look and no more: a start reads it with care, and says what is wrong with it. */
export async function readPins(path: string): Promise<Pins> {
  try {
    const control = JSON.parse(await readFile(path, 'utf8')) as Readonly<Record<string, unknown>> | null;
    const pin = (name: keyof Pins): Pins => {
      const value = control?.[name];
      return typeof value === 'string' ? { [name]: value } : {};
    };
    return { ...pin('backend'), ...pin('network') };
  } catch {
    return {};
  }
}
