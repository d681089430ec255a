/**
 * Where the agent of this host stands, by default and as told: found the same way by the agent and by every command that
 * looks for it. Flags before environment before defaults. Pure.
 */
import { join, resolve } from 'node:path';
import type { HostOs } from '@eitri/core/contracts';
import { envNameOf } from './flags.js';

export interface Places {
  readonly stateDir: string;
  readonly runDir: string;
}

export interface PlaceFacts {
  readonly os: HostOs;
  readonly root: boolean;
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export function findPlaces(
  given: { readonly stateDir?: string | undefined; readonly runDir?: string | undefined },
  facts: PlaceFacts,
): Places {
  const { os, root, home, env } = facts;
  const usualState = os === 'linux' ? '/var/lib/eitri-agent' : join(home, '.eitri-agent');
  const stateDir = resolve(given.stateDir ?? said(env, 'state-dir') ?? usualState);
  const runtime = env['XDG_RUNTIME_DIR'] ?? '';
  const usualRun =
    os === 'darwin'
      ? join(home, '.eitri-agent', 'run')
      : root
        ? '/run/eitri-agent'
        : runtime === ''
          ? join(stateDir, 'run')
          : join(runtime, 'eitri-agent');
  return { stateDir, runDir: resolve(given.runDir ?? said(env, 'run-dir') ?? usualRun) };
}

function said(env: PlaceFacts['env'], name: string): string | undefined {
  const value = env[envNameOf(name)];
  return value === '' ? undefined : value;
}
