import { chmodSync, mkdirSync, readFileSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { errorLine, systemCode } from '@eitri/core/kit';
import {
  ensureFolder,
  ensureNamedFolder,
  isTempName,
  readIfThere,
  removeDurably,
  sweepTemps,
  writeAdvice,
  writeAtomically,
} from '../../../src/host/atomic-file.js';
import { tempFolder } from '../../support/temp.js';

const modeOf = (path: string): number => statSync(path).mode & 0o7777;

describe('writing a file whole', () => {
  it('puts the bytes there with the mode asked for, whatever the umask, and leaves nothing else', async () => {
    const folder = tempFolder();
    const old = process.umask(0o077);
    try {
      await writeAtomically(join(folder, 'a'), 'one', 0o644);
    } finally {
      process.umask(old);
    }
    expect(readFileSync(join(folder, 'a'), 'utf8')).toBe('one');
    expect(modeOf(join(folder, 'a'))).toBe(0o644);
    expect(readdirSync(folder)).toEqual(['a']);
  });

  it('is private when no mode is given', async () => {
    const path = join(tempFolder(), 'secret');
    await writeAtomically(path, 'x');
    expect(modeOf(path)).toBe(0o600);
  });

  it('replaces the file and never writes into it: who has the old one open keeps its bytes', async () => {
    const path = join(tempFolder(), 'a');
    await writeAtomically(path, 'old');
    const { ino } = statSync(path);
    await writeAtomically(path, 'new');
    expect(statSync(path).ino).not.toBe(ino);
  });

  it('replaces a link and does not write through it', async () => {
    const folder = tempFolder();
    writeFileSync(join(folder, 'elsewhere'), 'theirs');
    symlinkSync(join(folder, 'elsewhere'), join(folder, 'a'));
    await writeAtomically(join(folder, 'a'), 'ours');
    expect(readFileSync(join(folder, 'elsewhere'), 'utf8')).toBe('theirs');
    expect(readFileSync(join(folder, 'a'), 'utf8')).toBe('ours');
  });

  it('that fails at the rename leaves what was there and no temporary file, and names the path', async () => {
    const folder = tempFolder();
    mkdirSync(join(folder, 'a'));
    writeFileSync(join(folder, 'a', 'inside'), 'kept');
    const error: unknown = await writeAtomically(join(folder, 'a'), 'x').catch((e: unknown) => e);
    expect(errorLine(error)).toContain(`write ${join(folder, 'a')}`);
    expect(readFileSync(join(folder, 'a', 'inside'), 'utf8')).toBe('kept');
    expect(readdirSync(folder)).toEqual(['a']);
  });

  it('of one path by many at once leaves one of them whole', async () => {
    const folder = tempFolder();
    const texts = Array.from({ length: 20 }, (_, i) => String(i).repeat(5000));
    await Promise.all(texts.map((text) => writeAtomically(join(folder, 'a'), text)));
    expect(texts).toContain(readFileSync(join(folder, 'a'), 'utf8'));
    expect(readdirSync(folder)).toEqual(['a']);
  });
});

describe('reading', () => {
  it('a file that is not there gives undefined, one that is too long or a folder is an error', async () => {
    const folder = tempFolder();
    expect(await readIfThere(join(folder, 'none'))).toBeUndefined();
    writeFileSync(join(folder, 'long'), 'x'.repeat(11));
    await expect(readIfThere(join(folder, 'long'), 10)).rejects.toThrow('read');
    await expect(readIfThere(folder)).rejects.toThrow('read');
  });

  it('below a file that stands where a folder should is an error, not an absence', async () => {
    const folder = tempFolder();
    writeFileSync(join(folder, 'file'), '');
    const error: unknown = await readIfThere(join(folder, 'file', 'x')).catch((e: unknown) => e);
    expect(systemCode(error)).toBe('ENOTDIR');
  });
});

describe('folders', () => {
  it('get their mode whatever the umask, those above too, and a second time whatever they had', async () => {
    const top = tempFolder();
    const old = process.umask(0o077);
    try {
      await ensureFolder(join(top, 'a', 'b'), 0o711);
    } finally {
      process.umask(old);
    }
    expect(modeOf(join(top, 'a', 'b'))).toBe(0o711);
    chmodSync(join(top, 'a', 'b'), 0o777);
    await ensureFolder(join(top, 'a', 'b'), 0o711);
    expect(modeOf(join(top, 'a', 'b'))).toBe(0o711);
  });

  it('that an operator named and made keep their mode', async () => {
    const folder = tempFolder();
    chmodSync(folder, 0o1777);
    await ensureNamedFolder(folder, 0o711);
    expect(modeOf(folder)).toBe(0o1777);
  });

  it('where a file stands in the way: the advice is to move it', async () => {
    const folder = tempFolder();
    writeFileSync(join(folder, 'a'), '');
    const error: unknown = await ensureFolder(join(folder, 'a'), 0o700).catch((e: unknown) => e);
    expect(writeAdvice(error, 'choose another')).toBe(
      'something that is no folder stands in the way: move it aside, or choose another',
    );
  });

  it('in a file system that lets nobody make one: the advice is another place', async () => {
    const error: unknown = await ensureFolder('/proc/eitri-test/a', 0o700).catch((e: unknown) => e);
    expect(writeAdvice(error, 'choose another')).toBe('its file system takes no new folders: choose another');
  });

  it('below a symbolic link to itself: the advice is to mend it', async () => {
    const folder = tempFolder();
    symlinkSync('a', join(folder, 'a'));
    const error: unknown = await ensureFolder(join(folder, 'a', 'b'), 0o700).catch((e: unknown) => e);
    expect(writeAdvice(error, 'choose another')).toContain('mend them, or choose another');
  });
});

describe('leftovers of writes that never ended', () => {
  it('are swept, and nothing else is', async () => {
    const folder = tempFolder();
    for (const name of ['.a.0123456789ab.tmp', 'a.tmp', '.hidden', 'a']) writeFileSync(join(folder, name), '');
    expect(await sweepTemps(folder)).toBe(1);
    expect(readdirSync(folder).sort()).toEqual(['.hidden', 'a', 'a.tmp']);
    expect(await sweepTemps(join(folder, 'none'))).toBe(0);
  });

  it('are known by their names', () => {
    expect(isTempName('.record.json.0123456789ab.tmp')).toBe(true);
    expect(isTempName('record.json')).toBe(false);
  });
});

it('removing a file twice, and below a folder that is not there, is fine', async () => {
  const folder = tempFolder();
  writeFileSync(join(folder, 'a'), '');
  await removeDurably(join(folder, 'a'));
  await removeDurably(join(folder, 'a'));
  await removeDurably(join(folder, 'none', 'a'));
  expect(readdirSync(folder)).toEqual([]);
});
