import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { GuestCidrFile } from '../../../src/state/index.js';
import { tempFolder } from '../../support/temp.js';

describe('the kept guest subnet', () => {
  it('is none before the first network, then what was kept, until it is forgotten', async () => {
    const file = new GuestCidrFile(join(tempFolder(), 'guest-cidr'));
    expect(await file.read()).toBeUndefined();
    await file.forget();
    await file.keep('10.77.1.0/24');
    expect(await file.read()).toBe('10.77.1.0/24');
    await file.keep('10.78.0.0/16');
    expect(await file.read()).toBe('10.78.0.0/16');
    await file.forget();
    expect(await file.read()).toBeUndefined();
  });

  it('is a line for people', async () => {
    const path = join(tempFolder(), 'guest-cidr');
    await new GuestCidrFile(path).keep('10.77.1.0/24');
    expect(readFileSync(path, 'utf8')).toBe('10.77.1.0/24\n');
  });

  it('that was emptied is not none: a plugin has to judge it', async () => {
    const path = join(tempFolder(), 'guest-cidr');
    writeFileSync(path, '');
    expect(await new GuestCidrFile(path).read()).toBe('');
  });
});
