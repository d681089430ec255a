import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { VmUid } from '@eitri/core/contracts';
import { isPermanent } from '@eitri/core/kit';
import { checkSocketRoom, MAX_SOCKET_NAME_BYTES, resolveFolders, StatePaths } from '../../../src/state/state-paths.js';
import { uidOf } from '../../support/records.js';

const folders = (os: 'linux' | 'darwin', root: boolean, xdgRuntimeDir?: string, flags = {}) =>
  resolveFolders({ facts: { os, root }, home: '/home/x', xdgRuntimeDir }, flags);

describe('the folders of an agent', () => {
  it('are the system’s for root on Linux, the session’s for others, the home’s on macOS', () => {
    expect(folders('linux', true, '/run/user/0')).toEqual({
      stateDir: '/var/lib/eitri-agent',
      runDir: '/run/eitri-agent',
    });
    expect(folders('linux', false, '/run/user/7').runDir).toBe('/run/user/7/eitri-agent');
    expect(folders('darwin', false)).toEqual({ stateDir: '/home/x/.eitri-agent', runDir: '/home/x/.eitri-agent/run' });
  });

  it('without a session’s folder are below the state directory, never in everybody’s /tmp', () => {
    for (const none of [undefined, '']) {
      expect(folders('linux', false, none, { stateDir: '/s' })).toEqual({ stateDir: '/s', runDir: '/s/run' });
    }
  });

  it('that flags name are taken as they are', () => {
    expect(folders('linux', true, undefined, { stateDir: '/s', runDir: '/r' })).toEqual({
      stateDir: '/s',
      runDir: '/r',
    });
  });
});

describe('the room for sockets', () => {
  const longest = (os: 'linux' | 'darwin') => (os === 'linux' ? 107 : 103);

  it('is enough exactly where the longest socket’s path still fits', () => {
    const paths = (runDir: string) => new StatePaths({ stateDir: '/s', runDir }).pathsOf(uidOf(1));
    fc.assert(
      fc.property(fc.constantFrom('linux' as const, 'darwin' as const), fc.integer({ min: 1, max: 120 }), (os, n) => {
        const runDir = `/${'ü'.repeat(Math.floor(n / 2))}${'a'.repeat(n % 2)}`;
        const socket = `${paths(runDir).runFolder}/${'s'.repeat(MAX_SOCKET_NAME_BYTES)}`;
        const fits = Buffer.byteLength(socket) <= longest(os);
        if (fits) checkSocketRoom(runDir, os);
        else expect(() => checkSocketRoom(runDir, os)).toThrow('--run-dir');
      }),
    );
  });

  it('missing is refused for good, with the flag and the limit', () => {
    const check = () => checkSocketRoom(`/${'x'.repeat(94)}`, 'linux');
    expect(check).toThrow(/--run-dir.* 95 bytes .*107/);
    try {
      check();
    } catch (error) {
      expect(isPermanent(error)).toBe(true);
    }
  });
});

describe('the paths of a life', () => {
  const paths = new StatePaths({ stateDir: '/s', runDir: '/r' });

  it('are all in its own folder, and its sockets in a short one that no other uid shares', () => {
    const { runFolder, ...rest } = paths.pathsOf(uidOf(1));
    for (const path of Object.values(rest)) expect(path).toMatch(new RegExp(`^/s/vms/${uidOf(1)}(/|$)`));
    expect(runFolder).toMatch(/^\/r\/[0-9a-f]{12}$/);
    expect(paths.pathsOf(uidOf(2)).runFolder).not.toBe(runFolder);
    expect(paths.record(uidOf(1))).toBe(`/s/vms/${uidOf(1)}/record.json`);
  });

  it.each(['..', '', 'web-1', '../x', uidOf(1).toUpperCase(), `${uidOf(1)}/..`])('of %j are refused', (uid) => {
    expect(() => paths.pathsOf(uid as VmUid)).toThrow('not a uid');
  });
});
