/**
 * What all commands have in common: where the agent stands, how a result is printed. Errors are not caught here: the
 * launcher prints every one in the same way.
 */
import { once } from 'node:events';
import { homedir } from 'node:os';
import type { HostOs } from '@eitri/core/contracts';
import { Command, Flags } from '@oclif/core';
import { findPlaces, type Places } from '../../app/places.js';
import { PLACE_SETTINGS } from '../../app/flags.js';

const place = ({ description, value }: { readonly description: string; readonly value: string }) =>
  Flags.string({ description, helpValue: value });

export const placeFlags = {
  'state-dir': place(PLACE_SETTINGS['state-dir']),
  'run-dir': place(PLACE_SETTINGS['run-dir']),
};

export interface PlaceFlags {
  readonly 'state-dir'?: string | undefined;
  readonly 'run-dir'?: string | undefined;
}

/** What another system than these two is, the agent itself refuses. */
export const hostOs: HostOs = process.platform === 'darwin' ? 'darwin' : 'linux';

export function placesOf(flags: PlaceFlags): Places {
  return findPlaces(
    { stateDir: flags['state-dir'], runDir: flags['run-dir'] },
    {
      os: hostOs,
      root: process.getuid?.() === 0,
      home: homedir(),
      env: process.env,
    },
  );
}

export abstract class AgentCommand extends Command {
  static override readonly baseFlags = placeFlags;

  protected print(text: string): void {
    process.stdout.write(text === '' || text.endsWith('\n') ? text : `${text}\n`);
  }

  /** Bytes as they are; waits for a slow reader instead of holding what it has not read. */
  protected async printBytes(bytes: Uint8Array): Promise<void> {
    if (!process.stdout.write(bytes)) await once(process.stdout, 'drain');
  }

  /** For programs: one document, with the operator API's field names. */
  protected printJson(value: unknown): void {
    this.print(JSON.stringify(value, null, 2));
  }
}

/** Columns of standard output; undefined: it is no terminal, and nothing is cut to fit. */
export const terminalColumns = (): number | undefined => (process.stdout.isTTY ? process.stdout.columns : undefined);

const DEFAULT_COLUMNS = 80;

/** Where sentences on standard output are broken: a terminal's columns, or those that every reader has. */
export const textColumns = (): number => terminalColumns() ?? DEFAULT_COLUMNS;
