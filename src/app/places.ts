/**
 * Where the agent of this host stands, by default and as told: found the same way by the agent and by every command that
 * looks for it. Flags before environment before defaults. Pure.
 */
import { resolve } from 'node:path';
import type { HostOs } from '@eitri/core/contracts';
// The file itself: a command that looks for the agent needs none of the stores.
import { resolveFolders, type StateFolders } from '../state/state-paths.js';
import { envNameOf } from './flags.js';

export type Places = StateFolders;

export interface PlaceFacts {
  readonly os: HostOs;
  readonly root: boolean;
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export function findPlaces(
  given: { readonly stateDir?: string | undefined; readonly runDir?: string | undefined },
  { os, root, home, env }: PlaceFacts,
): Places {
  const stateDir = given.stateDir ?? said(env, 'state-dir');
  const runDir = given.runDir ?? said(env, 'run-dir');
  return resolveFolders(
    { facts: { os, root }, home, xdgRuntimeDir: env['XDG_RUNTIME_DIR'] },
    {
      ...(stateDir === undefined ? {} : { stateDir: resolve(stateDir) }),
      ...(runDir === undefined ? {} : { runDir: resolve(runDir) }),
    },
  );
}

function said(env: PlaceFacts['env'], name: string): string | undefined {
  const value = env[envNameOf(name)];
  return value === '' ? undefined : value;
}
