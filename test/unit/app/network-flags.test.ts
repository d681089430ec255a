import { EXIT, exitCodeOf } from '@eitri/core/kit';
import { describe, expect, it } from 'vitest';
import type { AgentConfig } from '../../../src/app/config.js';
import { checkNamedNetworks } from '../../../src/app/network-flags.js';
import type { CatalogEntry } from '../../../src/backends/index.js';

const plugin: CatalogEntry = { root: '/plugins/lnx', origin: 'installed', packageName: 'lnx', version: '1.0.0' };
const lab: AgentConfig['host-network'] = [['lab', 'br1']];

function refusalOf(guest: string | undefined, named: AgentConfig['host-network'], network?: CatalogEntry) {
  try {
    checkNamedNetworks({ 'guest-network': guest, 'host-network': named }, network);
  } catch (error) {
    expect(exitCodeOf(error)).toBe(EXIT.badConfiguration);
    return (error as Error).message;
  }
  return undefined;
}

describe('named networks', () => {
  it('that nobody serves are refused, with which and why', () => {
    expect(refusalOf(undefined, lab)).toContain(
      "--host-network: lab can't be served, since no network plugin is installed",
    );
    expect(refusalOf('user', lab)).toContain("lab can't be served with --guest-network user");
  });

  it('that are served, or that nobody declared, are fine', () => {
    expect(refusalOf(undefined, lab, plugin)).toBeUndefined();
    expect(refusalOf('user', [])).toBeUndefined();
    expect(refusalOf(undefined, [])).toBeUndefined();
  });
});
