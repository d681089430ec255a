/**
 * Temporary folders that are gone after the test, also when it fails. Short paths: sockets stand in them. All of the tests'
 * folders are made here, below the run's own (test/support/run-folder.ts), which goes with the run whatever happens.
 */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** Others pass through: root's agent converts images as nobody, and dnsmasq has a user of its own. */
const PASSABLE_MODE = 0o711;

/** Gone with the test that runs now: nothing that the test leaves undone, or does in a wrong order, can keep it. */
export function tempFolder(prefix = 'eit-'): string {
  const folder = mkdtempSync(join(tmpdir(), prefix));
  onTestFinished(() => {
    removeFolder(folder);
  });
  return folder;
}

/**
 * One that several tests share, and others may pass. Whoever makes it removes it with `removeFolder`, in an `afterAll` that
 * is registered before anything is started; it is gone with the worker in any case.
 */
export function sharedFolder(prefix: string): string {
  const folder = mkdtempSync(join(tmpdir(), prefix));
  process.once('exit', () => {
    removeFolder(folder);
  });
  chmodSync(folder, PASSABLE_MODE);
  return folder;
}

/** With all that is in it; nothing happens where it is gone. */
export function removeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}
