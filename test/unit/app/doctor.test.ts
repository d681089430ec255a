import { GIB } from '@eitri/core/kit';
import { describe, expect, it } from 'vitest';
import { examine, isFit, type Check, type DoctorPorts, type FoundFile } from '../../../src/app/doctor.js';
import { GuestNetworkError } from '../../../src/app/guest-network.js';
import { doctorText } from '../../../src/commands/shared/doctor-text.js';

const mine: FoundFile = { kind: 'folder', userId: 0, writable: true, passable: true };

const healthy = (changes: Partial<DoctorPorts> = {}): DoctorPorts => ({
  nodeVersion: 'v20.20.2',
  os: 'linux',
  userId: 0,
  places: { stateDir: '/var/lib/eitri-agent', runDir: '/run/eitri-agent' },
  local: undefined,
  look: () => Promise.resolve(mine),
  freeBytes: () => Promise.resolve(100 * GIB),
  which: (tool) => Promise.resolve(`/usr/bin/${tool}`),
  kvm: () => Promise.resolve({ usable: true }),
  backend: () => Promise.resolve({ name: 'qemu', because: 'the only one', vmm: 'QEMU 7.2', notes: [] }),
  plugins: () => Promise.resolve([{ packageName: '@eitri/plugin-qemu', notes: [] }]),
  network: () => Promise.resolve(undefined),
  agent: () => Promise.resolve(undefined),
  marker: () => Promise.resolve({ lineage: 'a-lineage' }),
  ...changes,
});

const only = async (what: string, changes: Partial<DoctorPorts>): Promise<Check | undefined> =>
  (await examine(healthy(changes))).find((check) => check.what === what);

describe('the doctor', () => {
  it('finds a healthy host fit', async () => {
    const checks = await examine(healthy({ local: '/etc/eitri' }));
    expect(checks.map(({ level, what }) => `${level} ${what}`)).toEqual([
      'ok node',
      'ok state directory',
      'ok run directory',
      'ok backend',
      'ok plugins',
      'ok guest network',
      'ok kvm',
      'ok qemu-img',
      'ok xorriso',
      'ok passage',
      'ok free space',
      'ok agent',
      'ok manifest folder',
    ]);
    expect(isFit(checks)).toBe(true);
  });

  it("tells what the guests' network has found, each as it is", async () => {
    const findings = [
      { what: 'bridge', level: 'ok', detail: 'eitri0 has 10.77.1.1/24' },
      { what: 'dnsmasq', level: 'warn', detail: 'does not run', next: 'eitri-agent network repair' },
    ] as const;
    const network = () =>
      Promise.resolve({ name: 'lnx', because: 'it is the only one', cidr: '10.77.1.0/24', findings });
    const checks = await examine(healthy({ network }));
    const at = checks.findIndex(({ what }) => what === 'guest network');
    expect(checks[at]).toEqual({
      what: 'guest network',
      level: 'ok',
      detail: 'lnx (it is the only one), 10.77.1.0/24',
    });
    expect(checks.slice(at + 1, at + 3)).toEqual(findings);
  });

  it("finds a host unfit whose guests' network can not be, and says so once", async () => {
    const error = new GuestNetworkError('lnx', new Error('nft is not on this host: install the package nftables'));
    const refuse = () => Promise.reject(error);
    const checks = await examine(healthy({ network: refuse, backend: refuse }));
    expect(isFit(checks)).toBe(false);
    const told = checks.filter(({ detail }) => detail.includes('install the package nftables'));
    expect(told.map(({ what, level }) => `${level} ${what}`)).toEqual(['fail guest network']);
    expect(checks.find(({ what }) => what === 'backend')).toMatchObject({ level: 'warn' });
  });

  it('warns of a folder through which qemu-img’s user can’t pass, and says which', async () => {
    const look = (path: string) => Promise.resolve({ ...mine, passable: path !== '/root' });
    const places = { stateDir: '/root/vms/state', runDir: '/run/eitri-agent' };
    expect(await only('passage', { look, places })).toMatchObject({ level: 'warn', next: /^chmod o\+x \/root,/ });
    expect(await only('passage', { look, places, userId: 1000 })).toMatchObject({ level: 'ok' });
    expect(await only('passage', { look })).toMatchObject({ level: 'ok' });
  });

  it('warns of emulated guests, and only notes the rest', async () => {
    const notes = [
      { level: 'warn', text: 'guests are emulated (TCG), several times slower' },
      { level: 'info', text: 'ports are published on IPv4 addresses only' },
    ] as const;
    const backend = () => Promise.resolve({ name: 'qemu', because: 'the only one', vmm: 'QEMU 7.2', notes });
    const found = (await examine(healthy({ backend }))).filter(({ what }) => what === 'note');
    expect(found.map(({ level }) => level)).toEqual(['warn', 'ok']);
  });

  it('finds what is made at a start missing only where an agent has started', async () => {
    const findings = [{ what: 'bridge', level: 'ok', detail: 'made at the agent’s start', atStart: true }] as const;
    const network = () => Promise.resolve({ name: 'netenv-linux', because: 'b', cidr: '10.77.1.0/24', findings });
    expect(await only('bridge', { network })).toMatchObject({ level: 'ok' });
    const agent = (guestNetwork: string) => () =>
      Promise.resolve({ version: '1', pid: 7, backend: 'qemu', guestNetwork });
    expect(await only('bridge', { network, agent: agent('user') })).toMatchObject({ level: 'ok' });
    const missing = await only('bridge', { network, agent: agent('tap') });
    expect(missing).toMatchObject({ level: 'fail', next: 'eitri-agent network repair' });
  });

  it('warns of each plugin that is off, and only tells of one that is for other hosts', async () => {
    const plugins = () =>
      Promise.resolve([
        { packageName: '@eitri/plugin-qemu', notes: ['its hooks are not run (init)'] },
        { packageName: '@x/torn', refused: 'its entry ./a.js is missing', notes: [] },
        { packageName: '@x/mac', refused: 'it runs on darwin', unfit: true as const, notes: [] },
      ]);
    const checks = await examine(healthy({ plugins }));
    expect(checks.find(({ what }) => what === 'plugins')?.detail).toBe('1 of 3 can be used');
    expect(checks.filter(({ what }) => what === 'plugin').map(({ level, detail }) => `${level} ${detail}`)).toEqual([
      'warn @x/torn is off: its entry ./a.js is missing',
      'ok @x/mac is off: it runs on darwin',
      'ok @eitri/plugin-qemu: its hooks are not run (init)',
    ]);
    expect(isFit(checks)).toBe(true);
  });

  it('says what the agent that runs uses, which may be other than what was asked about', async () => {
    const agent = () => Promise.resolve({ version: '1.2.3', pid: 7, backend: 'cloudhv', guestNetwork: 'tap' });
    const check = await only('agent', { agent });
    expect(check?.detail).toBe('version 1.2.3 runs, pid 7, with backend cloudhv and guest network tap');
  });

  it.each(['v18.19.0', 'v20.18.3'])('finds Node %s too old', async (nodeVersion) => {
    expect(await only('node', { nodeVersion })).toMatchObject({ level: 'fail', next: 'install Node 20.19 or newer' });
  });

  it.each(['v20.19.0', 'v22.0.0'])('finds Node %s good', async (nodeVersion) => {
    expect(await only('node', { nodeVersion })).toMatchObject({ level: 'ok' });
  });

  it.each([
    ['somebody else’s', { ...mine, userId: 1000 }, 'belongs to user 1000'],
    ['read-only', { ...mine, writable: false }, 'can not be written'],
    ['a file', { ...mine, kind: 'file' as const }, 'is no folder'],
  ])('finds a state directory that is %s', async (_what, found, detail) => {
    const check = await only('state directory', { look: () => Promise.resolve(found) });
    expect(check?.level).toBe('fail');
    expect(check?.detail).toContain(detail);
    expect(check?.next).toContain('--state-dir');
  });

  it('finds no state directory: fit where one can be made, else not', async () => {
    const above = (writable: boolean) => (path: string) =>
      Promise.resolve(path === '/var/lib' ? { ...mine, writable } : undefined);
    expect(await only('state directory', { look: above(true) })).toMatchObject({ level: 'ok' });
    expect(await only('state directory', { look: above(false) })).toMatchObject({
      level: 'fail',
      detail: '/var/lib/eitri-agent is not there, and can not be made in /var/lib',
    });
  });

  it('finds a run directory too deep for sockets', async () => {
    const runDir = `/${'d'.repeat(81)}`;
    const check = await only('run directory', { places: { stateDir: '/s', runDir } });
    expect(check).toMatchObject({ level: 'fail', next: 'choose a shorter --run-dir' });
    const shorter = await only('run directory', { places: { stateDir: '/s', runDir: runDir.slice(0, 81) } });
    expect(shorter?.level).toBe('ok');
  });

  it('finds no backend: says what a start would', async () => {
    const why = 'no backend can run guests here; type: eitri-agent plugins install @eitri/plugin-qemu';
    const checks = await examine(healthy({ backend: () => Promise.reject(new Error(why)) }));
    expect(checks.find(({ what }) => what === 'backend')).toEqual({ what: 'backend', level: 'fail', detail: why });
    expect(isFit(checks)).toBe(false);
  });

  it('finds a backend that works differently here: its notes follow', async () => {
    const notes = [{ level: 'warn', text: 'guests are emulated' }] as const;
    const backend = () => Promise.resolve({ name: 'qemu', because: 'b', vmm: 'v', notes });
    const checks = await examine(healthy({ backend }));
    const at = checks.findIndex(({ what }) => what === 'backend');
    expect(checks[at + 1]).toEqual({ what: 'note', level: 'warn', detail: 'guests are emulated' });
  });

  it('finds no KVM: slow, and fit all the same', async () => {
    const checks = await examine(healthy({ kvm: () => Promise.resolve({ usable: false, why: 'ENOENT' }) }));
    const check = checks.find(({ what }) => what === 'kvm');
    expect(check?.level).toBe('warn');
    expect(check?.detail).toContain('emulated');
    expect(isFit(checks)).toBe(true);
  });

  it('misses a tool: says which package has it', async () => {
    const check = await only('xorriso', { which: () => Promise.resolve(undefined) });
    expect(check).toMatchObject({ level: 'fail', next: 'install it (on Debian: apt install xorriso)' });
  });

  it.each([
    [GIB / 2, 'fail'],
    [5 * GIB, 'warn'],
    [10 * GIB, 'ok'],
  ])('finds %d bytes free: %s', async (free, level) => {
    expect((await only('free space', { freeBytes: () => Promise.resolve(free) }))?.level).toBe(level);
  });

  it('can not do a check: says so, and does the others', async () => {
    const checks = await examine(healthy({ freeBytes: () => Promise.reject(new Error('ENOSYS')) }));
    expect(checks.find(({ what }) => what === 'free space')).toMatchObject({
      level: 'warn',
      detail: 'could not be checked: ENOSYS',
    });
    expect(checks).toHaveLength(12);
  });

  it('is told of a folder without its marker: says how to make one', async () => {
    const check = await only('manifest folder', {
      local: '/etc/eitri',
      marker: () => Promise.reject(new Error('/etc/eitri has no marker')),
    });
    expect(check).toMatchObject({ level: 'fail', next: 'eitri-agent local init /etc/eitri' });
  });

  it('speaks in lines that fit, with the next step below', () => {
    const text = doctorText(
      [
        { level: 'ok', what: 'node', detail: 'v20.20.2' },
        {
          level: 'warn',
          what: 'kvm',
          detail: '/dev/kvm can not be used (ENOENT): guests are emulated, ten times slower or more than they could be',
          next: 'enable virtualization in the firmware, load kvm_intel or kvm_amd, and be in the group kvm',
        },
      ],
      80,
    );
    expect(text).toBe(
      [
        'ok    node  v20.20.2',
        'warn  kvm   /dev/kvm can not be used (ENOENT): guests are emulated, ten times',
        '            slower or more than they could be',
        '            -> enable virtualization in the firmware, load kvm_intel or kvm_amd,',
        '               and be in the group kvm',
        '',
      ].join('\n'),
    );
  });
});
