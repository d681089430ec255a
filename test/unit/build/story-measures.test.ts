import { execFile } from 'node:child_process';
import { closeSync, copyFileSync, mkdirSync, openSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import {
  type CommandFailure,
  fileIdentity,
  holdsOpen,
  howItEnded,
  leftInRun,
  leftInState,
} from '../../../scripts/lib/story-measures.mjs';
import { tempFolder } from '../../support/temp.js';

const run = promisify(execFile);

/** A folder with these in it; those that end with a slash are empty folders. */
function folderWith(...paths: readonly string[]): string {
  const folder = tempFolder();
  for (const path of paths) {
    mkdirSync(join(folder, path.endsWith('/') ? path : dirname(path)), { recursive: true });
    if (!path.endsWith('/')) writeFileSync(join(folder, path), '');
  }
  return folder;
}

const IMAGE = `images/sha256-${'a'.repeat(64)}`;
const KEPT = ['control.json', 'desired.json', 'lock', `${IMAGE}.raw`, `${IMAGE}.json`, 'vms/', 'volumes/'];

describe('what is left', () => {
  it('of a state directory with nothing but what stays: is nothing', () => {
    expect(leftInState(folderWith(...KEPT))).toEqual([]);
    expect(leftInRun(folderWith('lock'))).toEqual([]);
  });

  it.each([
    ['an empty folder of a VM', 'vms/0000/', 'vms/0000/'],
    ['a volume', 'volumes/data.raw', 'volumes/data.raw'],
    ['a write that never ended', '.control.json.0123456789ab.tmp', '.control.json.0123456789ab.tmp'],
    ['an image that is half there', `${IMAGE}.partial`, `${IMAGE}.partial`],
    ['a folder of a conversion', `${IMAGE}.convert/`, `${IMAGE}.convert/`],
  ])('of a state directory with %s: names it', (_, path, named) => {
    expect(leftInState(folderWith(...KEPT, path))).toContain(named);
  });

  it('of a run directory with a socket’s empty folder: names it', () => {
    expect(leftInRun(folderWith('lock', 'vms/0000/'))).toEqual(['vms/', 'vms/0000/']);
  });
});

describe('the same file', () => {
  it('is told from a copy that took its place, and from none', () => {
    const file = join(folderWith('disk'), 'disk');
    const before = fileIdentity(file);
    expect(fileIdentity(file)).toBe(before);
    copyFileSync(file, `${file}.new`);
    renameSync(`${file}.new`, file);
    expect(fileIdentity(file)).not.toBe(before);
    expect(fileIdentity(`${file}.new`)).toBeUndefined();
  });

  it('is held open by a process, or not', () => {
    const file = join(folderWith('disk'), 'disk');
    const opened = openSync(file, 'r');
    expect(holdsOpen(process.pid, fileIdentity(file))).toBe(true);
    closeSync(opened);
    expect(holdsOpen(process.pid, fileIdentity(file))).toBe(false);
    expect(holdsOpen(process.pid, undefined)).toBe(false);
  });
});

describe('a command that failed', () => {
  const ended = async (program: string, timeoutMs = 60_000, path = process.execPath): Promise<string> =>
    await run(path, ['-e', program], { timeout: timeoutMs, killSignal: 'SIGKILL' }).then(
      () => 'it did not fail',
      (error: unknown) => howItEnded(error as CommandFailure, timeoutMs),
    );

  it.each([
    ['process.exit(69)', 'exit code 69, signal none: it said nothing'],
    ['console.error("no agent"); process.exitCode = 69', 'exit code 69, signal none: no agent'],
    ['process.kill(process.pid, "SIGTERM")', 'exit code none, signal SIGTERM: it said nothing'],
  ])('by %s: tells exit code, signal and what it said', async (program, told) => {
    expect(await ended(program)).toBe(told);
  });

  it('by its time limit: tells that too', async () => {
    expect(await ended('setInterval(() => 0, 1000)', 300)).toBe(
      'exit code none, signal SIGKILL after 0.3 s: it said nothing',
    );
  });

  it('to start: tells why', async () => {
    expect(await ended('', 60_000, '/nowhere/node')).toContain('ENOENT');
  });
});
