/**
 * What runs on this machine, as a test may ask: by words of the command line that only the test's own processes have. And
 * the end of those, by pid.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { until } from './until.js';

export interface RunningProcess {
  readonly pid: number;
  readonly argv: readonly string[];
}

/** Processes, but for this one, some argument of which holds all these words. Zombies have no command line. */
export function processesNaming(...words: readonly string[]): readonly RunningProcess[] {
  const found: RunningProcess[] = [];
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    try {
      const argv = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0').slice(0, -1);
      if (words.every((word) => argv.some((argument) => argument.includes(word)))) found.push({ pid, argv });
    } catch {
      // It ended meanwhile.
    }
  }
  return found;
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A zombie answers too, and is gone all the same.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${String(pid)}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** Kills everything that names the folder, which must be the test's own, and waits until it is gone. */
export async function endProcessesOf(folder: string): Promise<void> {
  await until(
    () => {
      const left = processesNaming(`${folder}/`);
      for (const { pid } of left) {
        try {
          process.kill(pid, 'SIGKILL');
        } catch {
          // It has ended.
        }
      }
      return left.length === 0;
    },
    { timeoutMs: 60_000, what: `processes of ${folder} end` },
  );
}
