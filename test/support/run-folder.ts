/**
 * A folder of its own for a run of vitest, below the OS's temp folder: whatever the run's tests make and start stands in
 * it, names it, or inherited it as TMPDIR. So what a run leaves can be told from anything else on this machine, and is
 * ended and removed, also when the run is interrupted: a worker's `afterAll` does not run then.
 *
 * Registered as vitest's globalSetup. Nobody cleans up after a SIGKILL: so the folder says whose it is, and each run first
 * removes those whose run is gone.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { TestProject } from 'vitest/node';

/** Set while a run's folder stands: each project has the setup called. */
const MARK = 'EITRI_TEST_RUN_FOLDER';
const EXIT_CODES = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;
/** Others pass through, as to a folder of /tmp: root's agent converts images as nobody. */
const MODE_PASSABLE = 0o711;
const END_LIMIT_MS = 20_000;

/** In a run's folder: whose it is, and what else goes with it. */
const OWNER_FILE = '.run.json';
const PREFIX = 'eit-';

interface Owner {
  readonly pid: number;
  /** As the kernel counts it: another process of this number is not the run. */
  readonly startTime: string;
  /** Vite's own folder, which it made before any setup. */
  readonly viteFolder: string;
}

export function setup(project: TestProject): (() => void) | undefined {
  if (process.env[MARK] !== undefined) return undefined;
  removeLeft(tmpdir());
  const outer = process.env['TMPDIR'];
  // Short: sockets stand in it, whose paths may have a hundred bytes.
  const folder = mkdtempSync(join(tmpdir(), PREFIX));
  const owner: Owner = { pid: process.pid, startTime: startTimeOf(process.pid) ?? '', viteFolder: project.tmpDir };
  writeFileSync(join(folder, OWNER_FILE), JSON.stringify(owner));
  chmodSync(folder, MODE_PASSABLE);
  process.env[MARK] = folder;
  // Workers inherit it.
  process.env['TMPDIR'] = folder;
  const removeAll = (): void => {
    removeTests(folder);
    rmSync(owner.viteFolder, { recursive: true, force: true });
  };
  const interrupted = (signal: keyof typeof EXIT_CODES): void => {
    process.exit(EXIT_CODES[signal]);
  };
  // After a signal, and where vitest gives up waiting for something that hangs: it calls no teardown then.
  process.on('exit', removeAll);
  for (const signal of Object.keys(EXIT_CODES)) process.on(signal, interrupted);
  return () => {
    for (const signal of Object.keys(EXIT_CODES)) process.off(signal, interrupted);
    removeTests(folder);
    Reflect.deleteProperty(process.env, MARK);
    if (outer === undefined) Reflect.deleteProperty(process.env, 'TMPDIR');
    else process.env['TMPDIR'] = outer;
  };
}

function removeTests(folder: string): void {
  endProcesses(folder);
  unmountBelow(folder);
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}

/** Removes what runs left that were killed. Touches nothing of another user, of a run at work, or without an owner. */
function removeLeft(place: string): void {
  for (const name of readdirSync(place)) {
    const folder = join(place, name);
    const owner = name.startsWith(PREFIX) ? ownerOf(folder) : undefined;
    if (owner === undefined || startTimeOf(owner.pid) === owner.startTime) continue;
    removeTests(folder);
    if (dirname(owner.viteFolder) === place) rmSync(owner.viteFolder, { recursive: true, force: true });
  }
}

function ownerOf(folder: string): Owner | undefined {
  try {
    if (statSync(folder).uid !== process.getuid?.()) return undefined;
    return JSON.parse(readFileSync(join(folder, OWNER_FILE), 'utf8')) as Owner;
  } catch {
    return undefined;
  }
}

/** Undefined: there is no such process. */
function startTimeOf(pid: number): string | undefined {
  try {
    // Behind the name, which may hold anything: field 22 of all.
    return readFileSync(`/proc/${String(pid)}/stat`, 'utf8')
      .split(')')
      .at(-1)
      ?.trim()
      .split(' ')[19];
  } catch {
    return undefined;
  }
}

/** Processes that were started in the run: this one was started before, and is none of them. */
export function processesOfRun(folder: string): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((name) => {
      // The environment tells of those that take no path (`sleep 600`), the arguments of VMMs, whose environment is cut.
      const has = (file: string, word: string): boolean => {
        try {
          return readFileSync(`/proc/${name}/${file}`, 'utf8').includes(word);
        } catch {
          // It ended meanwhile, or is another user's.
          return false;
        }
      };
      return has('environ', `TMPDIR=${folder}\0`) || has('cmdline', `${folder}/`);
    })
    .map(Number);
}

/** A small disk that a test mounted. */
function unmountBelow(folder: string): void {
  const places = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '');
  // The newest first: one may stand in another.
  for (const place of places.toReversed()) if (place.startsWith(`${folder}/`)) execFileSync('umount', [place]);
}

/** At once, and all of it: it is called where nothing can be awaited any more. */
function endProcesses(folder: string): void {
  const end = performance.now() + END_LIMIT_MS;
  for (let left = processesOfRun(folder); left.length > 0; left = processesOfRun(folder)) {
    if (performance.now() > end) throw new Error(`processes of ${folder} do not end: ${left.join(' ')}`);
    for (const pid of left) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It has ended.
      }
    }
  }
}
