import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { errorLine, EXIT, exitCodeOf, isPermanent } from '@eitri/core/kit';
import { FolderLock } from '../../../src/state/folder-lock.js';
import { bundle } from '../../support/bundle.js';
import { tempFolder } from '../../support/temp.js';

const there = { kind: 'state', path: '/var/lib/there' } as const;

function refusal(path: string): unknown {
  try {
    FolderLock.acquire(path, there, 1).release();
    return undefined;
  } catch (error) {
    return error;
  }
}

describe('the lock of a folder', () => {
  it('is had by one, who is named to the second with what to do and an exit code to try again', () => {
    const path = join(tempFolder(), 'lock');
    const lock = FolderLock.acquire(path, there, 4711);
    onTestFinished(() => lock.release());
    const error = refusal(path);
    expect(errorLine(error)).toBe(
      'another agent (pid 4711) uses the state directory /var/lib/there: stop it, or give another --state-dir',
    );
    expect(exitCodeOf(error)).toBe(EXIT.tryAgain);
    expect(isPermanent(error)).toBe(false);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it('of a run directory is told as such', () => {
    const path = join(tempFolder(), 'lock');
    const folder = { kind: 'run', path: '/run/there' } as const;
    const lock = FolderLock.acquire(path, folder, 4711);
    onTestFinished(() => lock.release());
    expect(() => FolderLock.acquire(path, folder, 1)).toThrow(
      'another agent (pid 4711) uses the run directory /run/there: stop it, or give another --run-dir',
    );
  });

  it('released is free, as often as it is released, and shows no digit of an earlier holder', () => {
    const path = join(tempFolder(), 'lock');
    const first = FolderLock.acquire(path, there, 1234567);
    first.release();
    const second = FolderLock.acquire(path, there, 42);
    first.release();
    expect(refusal(path)).toBeDefined();
    expect(readFileSync(path, 'utf8')).toBe('42\n');
    second.release();
    expect(refusal(path)).toBeUndefined();
  });

  it('whose file an agent left that died is free: the file is no lock', () => {
    const path = join(tempFolder(), 'lock');
    writeFileSync(path, `${process.pid}\n`);
    expect(refusal(path)).toBeUndefined();
  });

  it('is free as soon as its holder is killed, though a child of the holder lives on', async () => {
    const path = join(tempFolder(), 'lock');
    const holder = spawn(process.execPath, [await bundle('state/lock-holder.ts'), path], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void holder.kill('SIGKILL'));
    const [line] = (await once(holder.stdout, 'data')) as [Buffer];
    const child = Number(line.toString());
    onTestFinished(() => void process.kill(child, 'SIGKILL'));
    expect(errorLine(refusal(path))).toContain(`(pid ${String(holder.pid)})`);
    holder.kill('SIGKILL');
    await once(holder, 'exit');
    expect(process.kill(child, 0)).toBe(true);
    expect(refusal(path)).toBeUndefined();
  });

  it('where a link or a folder stands in its place is refused', () => {
    const folder = tempFolder();
    writeFileSync(join(folder, 'theirs'), 'kept');
    symlinkSync(join(folder, 'theirs'), join(folder, 'link'));
    mkdirSync(join(folder, 'folder'));
    for (const name of ['link', 'folder']) expect(errorLine(refusal(join(folder, name)))).toContain(`lock at`);
    expect(readFileSync(join(folder, 'theirs'), 'utf8')).toBe('kept');
  });
});
