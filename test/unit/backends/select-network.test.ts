import { describe, expect, it } from 'vitest';
import { selectNetwork, type CatalogEntry } from '../../../src/backends/index.js';

const plugin = (name: string, of: { readonly refused?: string; readonly os?: string } = {}): CatalogEntry => ({
  root: `/plugins/${name}`,
  origin: 'installed',
  packageName: `@eitri/plugin-${name}`,
  version: '1.0.0',
  manifest: { contract: 1, kind: 'network', name, os: [of.os ?? 'linux'], needs: {}, entry: './index.js' },
  ...(of.refused === undefined ? {} : { refused: of.refused }),
});
const provisioner: CatalogEntry = {
  ...plugin('qemu'),
  manifest: { contract: 1, kind: 'provisioner', name: 'qemu', os: ['linux'], needs: {}, entry: './index.js' },
};

const choose = (asked: string | undefined, ...entries: CatalogEntry[]): string | undefined =>
  chooseFor({}, asked, ...entries);

const chooseFor = (
  state: { readonly pinned?: string; readonly lives?: number },
  asked: string | undefined,
  ...entries: CatalogEntry[]
): string | undefined => {
  const { pinned, lives = 0 } = state;
  const outcome = selectNetwork({ entries: [provisioner, ...entries], os: 'linux', asked, pinned, lives });
  if (outcome === undefined) return undefined;
  return outcome.ok ? (outcome.selection.entry.manifest?.name ?? '?') : `refused: ${outcome.why}`;
};

describe('a guest network that nobody asked for', () => {
  it('is the only plugin that can be used', () => {
    expect(choose(undefined, plugin('lnx'))).toBe('lnx');
    expect(choose(undefined, plugin('lnx'), plugin('old', { refused: 'it is old' }))).toBe('lnx');
  });

  it('is none where no plugin is for this system', () => {
    expect(choose(undefined)).toBeUndefined();
    expect(choose(undefined, plugin('mac', { os: 'darwin', refused: 'it runs on darwin' }))).toBeUndefined();
  });

  it('is refused, with the reasons, where those that are here can not be used, and never falls back to user', () => {
    expect(choose(undefined, plugin('lnx', { refused: 'it is writable by others' }))).toBe(
      'refused: no network plugin can be used: @eitri/plugin-lnx: it is writable by others; put that right, or give --guest-network user',
    );
  });

  it('is refused, with what to type, where several qualify', () => {
    expect(choose(undefined, plugin('b'), plugin('a'))).toBe(
      'refused: several network plugins qualify (a, b): choose one with --guest-network NAME',
    );
  });
});

describe('a guest network that was asked for', () => {
  it('is taken, also beside others; user takes none', () => {
    expect(choose('a', plugin('a'), plugin('b'))).toBe('a');
    expect(choose('user', plugin('a'))).toBeUndefined();
  });

  it('is refused by its name where it is not installed, with what is and what to type', () => {
    const told = choose('nosuch', plugin('lnx'), plugin('old', { refused: 'it was built for contract 0' }));
    expect(told).toContain('--guest-network nosuch: no network plugin of that name is installed (installed are lnx)');
    expect(told).toContain('plugins install @eitri/plugin-nosuch');
    expect(choose('nosuch')).toContain('(none is)');
    expect(choose('qemu')).toContain('no network plugin of that name');
  });

  it('is refused with its reason where its plugin is', () => {
    const told = choose('old', plugin('old', { refused: 'it was built for contract 0' }));
    expect(told).toContain("it can't be used: it was built for contract 0");
  });
});

describe('a guest network that VMs are on already', () => {
  const lnx = { pinned: 'lnx', lives: 2 };
  const user = { pinned: 'user', lives: 1 };

  it('stays what it is, whatever else qualifies by now', () => {
    expect(chooseFor(lnx, undefined, plugin('a'), plugin('lnx'))).toBe('lnx');
    expect(chooseFor(lnx, 'lnx', plugin('a'), plugin('lnx'))).toBe('lnx');
    expect(chooseFor(user, 'user', plugin('lnx'))).toBeUndefined();
  });

  it('is not exchanged for another by a flag, or by a plugin that came meanwhile', () => {
    expect(chooseFor(lnx, 'user', plugin('lnx'))).toContain('refused: --guest-network user: the VMs of this state');
    expect(chooseFor(lnx, 'a', plugin('a'), plugin('lnx'))).toContain('give --guest-network lnx, delete all VMs first');
    expect(chooseFor(user, 'lnx', plugin('lnx'))).toContain('have user-mode networks');
    expect(chooseFor(user, undefined, plugin('lnx'))).toContain('give --guest-network user');
  });

  it('is asked for by what to type where its plugin is gone, and by its reason where that is off', () => {
    expect(chooseFor(lnx, undefined, plugin('a'))).toContain('plugins install @eitri/plugin-lnx');
    expect(chooseFor(lnx, undefined, plugin('a'), plugin('lnx', { refused: 'it is old' }))).toContain('it is old');
  });

  it('may be exchanged once no VM is left', () => {
    expect(chooseFor({ pinned: 'lnx' }, undefined, plugin('a'))).toBe('a');
    expect(chooseFor({ pinned: 'lnx' }, 'user', plugin('lnx'))).toBeUndefined();
    expect(chooseFor({ pinned: 'user' }, undefined, plugin('lnx'))).toBe('lnx');
  });
});
