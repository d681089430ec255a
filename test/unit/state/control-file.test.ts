import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isPermanent } from '@eitri/core/kit';
import { ControlFile } from '../../../src/state/control-file.js';
import { tempFolder } from '../../support/temp.js';

const random = { uuid: () => 'id-1', fraction: () => 0, secretBytes: () => new Uint8Array(0) };
const make = (path = join(tempFolder(), 'control.json')) => ({ path, file: new ControlFile(path, random) });

describe('control.json', () => {
  it('is not there before the first change, and private after it, with an id that stays', async () => {
    const { path, file } = make();
    expect(await file.read()).toBeUndefined();
    await file.update((state) => ({ ...state, backend: 'qemu' }));
    expect(await new ControlFile(path, { ...random, uuid: () => 'id-2' }).update((state) => state)).toEqual({
      version: 1,
      stateId: 'id-1',
      backend: 'qemu',
    });
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it('keeps what a newer agent wrote into it', async () => {
    const { path, file } = make();
    await file.update((state) => state);
    writeFileSync(path, readFileSync(path, 'utf8').replace('{', '{"later": [1],'));
    await file.update((state) => ({ ...state, backend: 'qemu' }));
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ later: [1], backend: 'qemu' });
  });

  it('changed by many at once loses no change', async () => {
    const { file } = make();
    await Promise.all(Array.from({ length: 20 }, () => file.update((s) => ({ ...s, backend: `${s.backend ?? ''}x` }))));
    expect((await file.read())?.backend).toBe('x'.repeat(20));
  });

  it('that changes nothing is not written', async () => {
    const { path, file } = make();
    await file.update((state) => state);
    const { ino } = statSync(path);
    await file.update((state) => ({ ...state }));
    expect(statSync(path).ino).toBe(ino);
  });

  it.each(['', '{}', '{"version":1', '\0', '{"version":1,"stateId":"x","backend":""}'])(
    'that reads %j is an error at read and change, and is left as it is',
    async (text) => {
      const { path, file } = make();
      writeFileSync(path, text);
      const errors = await Promise.all([file.read(), file.update((s) => s)].map((p) => p.catch((e: unknown) => e)));
      expect(errors.every(isPermanent)).toBe(true);
      expect(readFileSync(path, 'utf8')).toBe(text);
    },
  );
});
