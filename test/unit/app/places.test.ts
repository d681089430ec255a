import { describe, expect, it } from 'vitest';
import { findPlaces } from '../../../src/app/places.js';

const root = { os: 'linux', root: true, home: '/root', env: {} } as const;
const user = { os: 'linux', root: false, home: '/home/ann', env: {} } as const;

describe('where an agent stands', () => {
  it.each([
    ['root on Linux', root, '/var/lib/eitri-agent', '/run/eitri-agent'],
    ['somebody on Linux', user, '/var/lib/eitri-agent', '/var/lib/eitri-agent/run'],
    [
      'somebody with a session',
      { ...user, env: { XDG_RUNTIME_DIR: '/run/user/1000' } },
      '/var/lib/eitri-agent',
      '/run/user/1000/eitri-agent',
    ],
    [
      'macOS',
      { os: 'darwin', root: false, home: '/Users/ann', env: {} },
      '/Users/ann/.eitri-agent',
      '/Users/ann/.eitri-agent/run',
    ],
  ] as const)('for %s', (_who, facts, stateDir, runDir) => {
    expect(findPlaces({}, facts)).toEqual({ stateDir, runDir });
  });

  it('told by flag and by environment: the flag holds', () => {
    const facts = { ...root, env: { EITRI_STATE_DIR: '/env/state', EITRI_RUN_DIR: '/env/run' } };
    expect(findPlaces({ runDir: '/flag/run' }, facts)).toEqual({ stateDir: '/env/state', runDir: '/flag/run' });
  });
});
