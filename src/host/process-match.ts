/**
 * Whether a process that no pidfile vouches for is the one that a lost agent started: same program, same user, and the
 * option that names this VM, in its exact place. Pure.
 *
 * `unclear` is for what must be neither signalled nor ignored: were it ignored, a second VMM could start on one disk.
 */
import { basename } from 'node:path';
import type { ProcessIdentity } from '@eitri/core/contracts';
import type { CommandLine, ProcessFacts } from './process-table.js';

export type Match =
  { readonly kind: 'ours' } | { readonly kind: 'foreign' } | { readonly kind: 'unclear'; readonly why: string };

/** The identity's executable as it is on disk now. */
export interface Program {
  /** Its path, and what the path leads to through links. */
  readonly paths: readonly string[];
  /** The system runs a script through its interpreter, whose second argument is then the script's path. */
  readonly script: boolean;
}

export function matchProcess(
  found: ProcessFacts,
  identity: ProcessIdentity,
  program: Program,
  agentUserId: number | undefined,
): Match {
  if (!holdsPair(found.argv, identity.option, identity.value)) return { kind: 'foreign' };
  const userId = identity.userId ?? agentUserId;
  if (userId !== undefined && found.userId !== undefined && found.userId !== userId) return { kind: 'foreign' };

  const at = `process ${found.pid} has ${identity.option} ${identity.value}`;
  if (found.userId === undefined) return { kind: 'unclear', why: `${at}, and its user can't be read` };
  if (found.executable !== undefined && program.paths.includes(found.executable)) return { kind: 'ours' };
  if (program.script && program.paths.includes(found.argv[1] ?? '')) return { kind: 'ours' };

  // Moved by an upgrade while it ran, or hidden from us: too near to be a stranger.
  const name = basename(found.executable ?? found.argv[0] ?? '');
  if (!program.paths.some((path) => basename(path) === name)) return { kind: 'foreign' };
  const runs = found.executable === undefined ? 'and its program can not be read' : `and runs ${found.executable}`;
  return { kind: 'unclear', why: `${at}, ${runs} instead of ${identity.executable}` };
}

/** Whether the option stands there with exactly this value behind it. */
export const holdsPair = (argv: readonly string[], option: string, value: string): boolean =>
  argv.some((word, i) => i > 0 && word === option && argv[i + 1] === value);

export const pairKey = (option: string, value: string): string => `${option}\0${value}`;

/** One look at all processes, asked by many: the pids under each pair of neighbouring arguments. */
export function indexPairs(lines: readonly CommandLine[]): ReadonlyMap<string, readonly number[]> {
  const index = new Map<string, number[]>();
  for (const { pid, argv } of lines) {
    for (let i = 1; i + 1 < argv.length; i++) {
      const key = pairKey(argv[i] ?? '', argv[i + 1] ?? '');
      const pids = index.get(key);
      if (pids === undefined) index.set(key, [pid]);
      else if (!pids.includes(pid)) pids.push(pid);
    }
  }
  return index;
}

/** Of several that match, the one that none of the others started: a fork has its parent's program and arguments. */
export function eldest(matches: readonly ProcessFacts[]): ProcessFacts | undefined {
  const pids = new Set(matches.map((match) => match.pid));
  const roots = matches.filter((match) => !pids.has(match.parentPid));
  return [...roots].sort((a, b) => a.pid - b.pid)[0];
}
