/**
 * Temporary folders that are gone after the test, also when it fails. Short paths: sockets stand in them.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

export function tempFolder(prefix = 'eit-'): string {
  const folder = mkdtempSync(join(tmpdir(), prefix));
  onTestFinished(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}
