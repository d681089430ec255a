import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isPermanent } from '@eitri/core/kit';
import { SystemRandom } from '../../../src/host/index.js';
import { HostKeyStore } from '../../../src/state/host-keys.js';
import { tempFolder } from '../../support/temp.js';

describe('the host keys of a guest', () => {
  it('are what OpenSSH reads: ssh-keygen gives the same public line for the private key', async () => {
    for (let i = 0; i < 5; i++) {
      const folder = join(tempFolder(), 'keys');
      const { privateOpenSsh, publicLine } = await new HostKeyStore(new SystemRandom()).ensure(folder);
      const path = join(folder, 'ssh_host_ed25519_key');
      expect(readFileSync(path, 'utf8')).toBe(privateOpenSsh);
      expect(execFileSync('ssh-keygen', ['-y', '-f', path], { encoding: 'utf8' }).trim()).toBe(publicLine);
      expect([folder, path].map((one) => statSync(one).mode & 0o777)).toEqual([0o700, 0o600]);
    }
  });

  it('are laid out as ssh-keygen does it: its own rewriting changes the comment and the check number only', async () => {
    const folder = join(tempFolder(), 'keys');
    const { privateOpenSsh, publicLine } = await new HostKeyStore(new SystemRandom()).ensure(folder);
    const copy = join(tempFolder(), 'copy');
    writeFileSync(copy, privateOpenSsh, { mode: 0o600 });
    execFileSync('ssh-keygen', ['-c', '-C', '', '-f', copy], { stdio: 'ignore' });
    expect(readFileSync(copy, 'utf8')).toHaveLength(privateOpenSsh.length);
    expect(execFileSync('ssh-keygen', ['-y', '-f', copy], { encoding: 'utf8' }).trim()).toBe(publicLine);
  });

  it('are made once: at once, again, and by the next agent they are the same, and no two guests share them', async () => {
    const folder = join(tempFolder(), 'keys');
    const store = new HostKeyStore(new SystemRandom());
    const all = await Promise.all(Array.from({ length: 10 }, () => store.ensure(folder)));
    all.push(await new HostKeyStore(new SystemRandom()).ensure(folder));
    expect(new Set(all.map((key) => key.privateOpenSsh)).size).toBe(1);
    expect(readdirSync(folder)).toEqual(['ssh_host_ed25519_key']);
    expect((await store.ensure(join(tempFolder(), 'keys'))).publicLine).not.toBe(all[0]?.publicLine);
  });

  it('garbled are an error for good, and are not made anew', async () => {
    const folder = join(tempFolder(), 'keys');
    const { privateOpenSsh } = await new HostKeyStore(new SystemRandom()).ensure(folder);
    const path = join(folder, 'ssh_host_ed25519_key');
    for (const text of ['', privateOpenSsh.slice(0, 200), '\0'.repeat(400)]) {
      writeFileSync(path, text);
      const error: unknown = await new HostKeyStore(new SystemRandom()).ensure(folder).catch((e: unknown) => e);
      expect(isPermanent(error)).toBe(true);
      expect(readFileSync(path, 'utf8')).toBe(text);
    }
  });
});
