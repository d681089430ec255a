import { EXIT, exitCodeOf } from '@eitri/core/kit';
import { describe, expect, it } from 'vitest';
import type { AgentConfig } from '../../../src/app/config.js';
import { checkNetworkFlags } from '../../../src/app/network-flags.js';
import type { CatalogEntry } from '../../../src/backends/index.js';

const plugin = (name: string, refused?: string): CatalogEntry => ({
  root: `/plugins/${name}`,
  origin: 'installed',
  packageName: `@eitri/plugin-${name}`,
  version: '1.0.0',
  manifest: { contract: 1, kind: 'network', name, os: ['linux'], needs: {}, entry: './index.js' },
  ...(refused === undefined ? {} : { refused }),
});
const lab: AgentConfig['host-network'] = [['lab', 'br1']];

function refusalOf(guest: string | undefined, named: AgentConfig['host-network'], ...entries: CatalogEntry[]) {
  try {
    checkNetworkFlags({ 'guest-network': guest, 'host-network': named }, entries);
  } catch (error) {
    expect(exitCodeOf(error)).toBe(EXIT.badConfiguration);
    return (error as Error).message;
  }
  return undefined;
}

describe('a guest network', () => {
  it('that is not installed is refused by its name, with what is installed and what to type', () => {
    const message = refusalOf('nosuch', [], plugin('lnx'), plugin('old', 'it was built for contract 0'));
    expect(message).toContain(
      '--guest-network nosuch: no network plugin of that name is installed (installed are lnx)',
    );
    expect(message).toContain('plugins install @eitri/plugin-nosuch');
    expect(refusalOf('nosuch', [])).toContain('(none is)');
  });

  it('whose plugin is refused is refused with its reason', () => {
    const message = refusalOf('old', [], plugin('old', 'it was built for contract 0'));
    expect(message).toContain("it can't be used: it was built for contract 0");
  });

  it('that is there, that every guest has of its own, or that nobody asked for is fine', () => {
    expect(refusalOf('lnx', [], plugin('lnx'))).toBeUndefined();
    expect(refusalOf('user', [])).toBeUndefined();
    expect(refusalOf(undefined, [])).toBeUndefined();
  });
});

describe('named networks', () => {
  it('that nobody serves are refused, with which and why', () => {
    expect(refusalOf(undefined, lab)).toContain(
      "--host-network: lab can't be served, since no network plugin is installed",
    );
    expect(refusalOf('user', lab, plugin('lnx'))).toContain("lab can't be served with --guest-network user");
    expect(refusalOf(undefined, lab, plugin('lnx'))).toBeUndefined();
  });
});
