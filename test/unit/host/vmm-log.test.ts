import { appendFileSync, linkSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isPermanent } from '@eitri/core/kit';
import { openVmmLog, readVmmLogTail, rotateVmmLog, VMM_LOG_TAIL_BYTES } from '../../../src/host/vmm-log.js';
import { tempFolder } from '../../support/temp.js';

describe('the end of a VMM’s log', () => {
  it('is the whole of a short one, and undefined where there is none', async () => {
    const path = join(tempFolder(), 'vmm.log');
    expect(await readVmmLogTail(path)).toBeUndefined();
    writeFileSync(path, 'a\nb\n');
    expect(await readVmmLogTail(path)).toBe('a\nb\n');
  });

  it('of a long one starts with a whole line and is bounded', async () => {
    const path = join(tempFolder(), 'vmm.log');
    writeFileSync(path, 'first line\n'.repeat(20_000) + 'end\n');
    const tail = (await readVmmLogTail(path)) ?? '';
    expect(tail.length).toBeLessThanOrEqual(VMM_LOG_TAIL_BYTES);
    expect(tail.startsWith('first line\n')).toBe(true);
    expect(tail.endsWith('end\n')).toBe(true);
  });

  it('is never that of another file put in its place', async () => {
    const folder = tempFolder();
    writeFileSync(join(folder, 'secret'), 'secret');
    symlinkSync(join(folder, 'secret'), join(folder, 'link'));
    linkSync(join(folder, 'secret'), join(folder, 'second-name'));
    mkdirSync(join(folder, 'folder'));
    for (const name of ['link', 'second-name', 'folder']) {
      const error: unknown = await readVmmLogTail(join(folder, name)).catch((e: unknown) => e);
      expect(isPermanent(error), name).toBe(true);
    }
  });
});

describe('rotating', () => {
  it('a log that is not long does nothing', async () => {
    const path = join(tempFolder(), 'vmm.log');
    expect(await rotateVmmLog(path)).toBe(false);
    writeFileSync(path, 'a\n');
    expect(await rotateVmmLog(path)).toBe(false);
    expect(readFileSync(path, 'utf8')).toBe('a\n');
  });

  it('a long log keeps its end aside, and a writer that has it open goes on at the beginning', async () => {
    const path = join(tempFolder(), 'vmm.log');
    const writer = await openVmmLog(path);
    try {
      await writer.write('0123456789\n'.repeat(10));
      expect(await rotateVmmLog(path, 55)).toBe(true);
      await writer.write('after\n');
    } finally {
      await writer.close();
    }
    expect(readFileSync(path, 'utf8')).toBe('after\n');
    expect(readFileSync(`${path}.1`, 'utf8')).toBe('0123456789\n'.repeat(4));
    expect(statSync(path).mode & 0o777).toBe(0o600);
    appendFileSync(path, 'x'.repeat(100));
    expect(await rotateVmmLog(path, 55)).toBe(true);
    expect(statSync(`${path}.1`).size).toBeLessThanOrEqual(55);
  });
});
