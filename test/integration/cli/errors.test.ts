/**
 * What an operator sees when something is wrong: one sentence with the next step, at 80 columns, an exit code, and never
 * a stack. Each is a golden file. Needs QEMU's tools, and root for the full disk.
 */
import { createHash } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { StatusView, VmView } from '@eitri/protocol';
import { describe, expect, it, onTestFinished } from 'vitest';
import { wrap } from '../../../src/app/complaint.js';
import { AGENT_ROOT, runCli, shown, startAgent, type CliResult } from '../../support/cli.js';
import { tempFolder } from '../../support/temp.js';
import { until } from '../../support/until.js';

const golden = async (name: string, result: CliResult, folder: string): Promise<void> => {
  expect(result.stderr).not.toMatch(/^\s+at /m);
  const text = shown(result, folder, (sentence) => wrap(sentence, 80));
  for (const line of text.split('\n')) if (line.trim().includes(' ')) expect(line.length).toBeLessThanOrEqual(80);
  await expect(text).toMatchFileSnapshot(`../../golden/cli/error-${name}.txt`);
};

/** What another host, or another minute, says differently. */
const steady = (text: string): string =>
  text
    .replace(/^(agent +).*$/m, '$1VERSION, pid PID, since TIME')
    .replace(/^(host +).*$/m, '$1HOST')
    .replace(/^(backend +qemu, ).*(, guest network)/m, '$1VERSION$2')
    // What depends on who runs the test, and on which machine.
    .replace(/^note +(guests are emulated|QEMU runs as root).*\n(?: {3,}.*\n)*/gm, '')
    .replace(/lineage [0-9a-f-]{36}/, 'lineage LINEAGE');

interface Place {
  readonly folder: string;
  readonly vms: string;
  readonly flags: (state?: string, run?: string) => string[];
  /** The flags of commands that talk to the agent with the default `flags`. */
  readonly at: string[];
}

/** A folder with a manifest folder in it, and the flags for an agent on them. */
async function place(): Promise<Place> {
  const folder = tempFolder();
  const vms = join(folder, 'vms');
  expect((await runCli(['local', 'init', vms])).code).toBe(0);
  const at = (state = 'state', run = 'run') => ['--state-dir', join(folder, state), '--run-dir', join(folder, run)];
  const own = ['--local', vms, '--guest-network', 'user', '--backend', 'qemu'];
  return { folder, vms, at: at(), flags: (state, run) => [...own, ...at(state, run)] };
}

/** A command on a machine of this id: its /etc has another machine-id in it, and nobody else sees that. */
function onMachine(id: string, mountPoint: string): { readonly prefix: readonly string[] } {
  mkdirSync(mountPoint);
  const script = [
    'mount -t tmpfs eitri-test "$0"',
    'mkdir "$0/upper" "$0/work"',
    `echo ${id} > "$0/upper/machine-id"`,
    'mount -t overlay eitri-test -o "lowerdir=/etc,upperdir=$0/upper,workdir=$0/work" /etc',
    'exec "$@"',
  ];
  return { prefix: ['unshare', '--mount', 'sh', '-ec', script.join('\n'), mountPoint] };
}

/** Another user than root, who may read this checkout wherever it stands, and writes nothing. */
const NOBODY = {
  prefix: [
    ...['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'],
    ...[
      '--inh-caps=-all,+dac_read_search',
      '--ambient-caps=-all,+dac_read_search',
      '--bounding-set=-all,+dac_read_search',
    ],
  ],
};

describe('a command line that is wrong', () => {
  it.each([
    ['unknown-flag', ['vm', 'list', '--jsno']],
    ['unknown-command', ['vm', 'lst']],
    ['unknown-setting-flag', ['--statedir', '/x']],
    ['missing-argument', ['vm', 'console']],
    ['missing-value', ['vm', 'list', '--run-dir']],
    ['twice', ['vm', 'list', '--run-dir', '/a', '--run-dir', '/b']],
    ['bad-duration', ['run', '--tombstone-grace', 'soon']],
    ['negative-duration', ['run', '--vanish-grace', '-5m']],
    ['bad-cidr', ['run', '--bridge-cidr', 'banana']],
    ['bad-url', ['run', '--bootstrap-url', 'foo']],
    ['no-file', ['vm', 'create']],
    ['bad-cap', ['run', '--max-vcpus', '-1']],
    ['bad-host-network', ['run', '--host-network', 'lab']],
    ['bad-tail', ['vm', 'logs', 'web-1', '--tail', 'all']],
    ['bad-timeout', ['vm', 'stop', 'web-1', '--timeout', 'long']],
    ['force-and-read-only', ['vm', 'console', 'web-1', '--force', '--read-only']],
    ['not-joined', ['run']],
  ])('%s: says what to type instead', async (name, args) => {
    const result = await runCli(args);
    expect(result.code).toBe(64);
    await golden(name, result, '/nowhere');
  });
});

describe('a manifest folder that can not be made', () => {
  it.each([
    ['below /proc', '/proc/eitri/vms'],
    ['below a file', '/dev/null/vms'],
  ])('%s: says so, and ends', async (name, path) => {
    const result = await runCli(['local', 'init', path]);
    expect(result.code).toBe(73);
    await golden(`init-${name.replaceAll(/\W+/g, '-')}`, result, '/nowhere');
  });
});

describe('an agent that can not start', () => {
  it('on a folder without its marker', async () => {
    const { folder, at } = await place();
    const result = await runCli(['run', '--local', folder, '--guest-network', 'user', ...at]);
    expect(result.code).toBe(65);
    await golden('no-marker', result, folder);
  });

  it('on a folder that is not there: nothing is pinned, and no backend was asked', async () => {
    const { folder, flags } = await place();
    rmSync(join(folder, 'vms'), { recursive: true });
    const result = await runCli(['run', ...flags(), '--qemu-bin', join(folder, 'no-qemu')]);
    expect(result.code).toBe(65);
    expect(readdirSync(join(folder, 'state'))).not.toContain('control.json');
    await golden('no-folder', result, folder);
  });

  it('with a guest network that is not installed, or named networks that nobody serves', async () => {
    const { folder, vms, at } = await place();
    const common = ['run', '--local', vms, '--backend', 'qemu', ...at];
    const nosuch = await runCli([...common, '--guest-network', 'nosuch']);
    expect(nosuch.code).toBe(78);
    await golden('no-guest-network', nosuch, folder);
    const named = await runCli([...common, '--guest-network', 'user', '--host-network', 'lab=br1']);
    expect(named.code).toBe(78);
    await golden('host-network-unserved', named, folder);
  });

  it('for a user who may not write the state: says so, and where it may be', async () => {
    const { folder, vms, at } = await place();
    chmodSync(folder, 0o755);
    const named = await runCli(['run', '--local', vms, '--guest-network', 'user', '--backend', 'qemu', ...at], NOBODY);
    expect(named.code).toBe(73);
    await golden('state-forbidden', named, folder);
    const byDefault = ['run', '--local', vms, '--guest-network', 'user', '--backend', 'qemu'];
    const result = await runCli(byDefault, NOBODY);
    expect(result.code).toBe(73);
    expect(result.stderr).toContain('--state-dir');
    await golden('state-forbidden-default', result, folder);
  });

  it('in a run directory too deep for sockets', async () => {
    const { folder, flags } = await place();
    const result = await runCli(['run', ...flags('state', 'd'.repeat(100))]);
    expect(result.code).toBe(78);
    await golden(
      'run-dir-too-deep',
      { ...result, stderr: result.stderr.replace(/has \d+ bytes/, 'has N bytes') },
      folder,
    );
  });

  it('on a state directory that can not be made', async () => {
    const { folder, flags } = await place();
    writeFileSync(join(folder, 'file'), '');
    const result = await runCli(['run', ...flags('file')]);
    expect(result.code).toBe(73);
    await golden('state-unwritable', result, folder);
  });

  it('on a state directory that was copied from another machine, until --adopt says that it is meant', async () => {
    const { folder, flags } = await place();
    mkdirSync(join(folder, 'state', 'vms'), { recursive: true });
    const theirs = { version: 1, stateId: 'a-state', machineId: '11111111111111111111111111111111' };
    writeFileSync(join(folder, 'state', 'control.json'), JSON.stringify(theirs));
    const here = onMachine('22222222222222222222222222222222', join(folder, 'etc'));
    const result = await runCli(['run', ...flags()], here);
    expect(result.code).toBe(78);
    await golden('state-of-another-machine', result, folder);
    const taken = await runCli(['run', ...flags(), '--adopt', '--qemu-bin', join(folder, 'no-qemu')], here);
    expect(taken.stderr).toContain('no-qemu');
  });

  it('on a disk that is full', async () => {
    const { folder, flags } = await place();
    const disk = join(folder, 'disk');
    mkdirSync(disk);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'eitri-test', disk]);
    onTestFinished(() => void execFileSync('umount', ['--lazy', disk]));
    for (const size of [4096, 1]) {
      try {
        for (;;) writeFileSync(join(disk, 'filler'), Buffer.alloc(size), { flag: 'a' });
      } catch {
        // Full to within this size.
      }
    }
    const result = await runCli(['run', ...flags('disk/state')]);
    expect(result.code).toBe(73);
    await golden('disk-full', result, folder);
  });

  it('without the binary of its backend', async () => {
    const { folder, flags } = await place();
    const result = await runCli(['run', ...flags(), '--qemu-bin', join(folder, 'qemu')]);
    expect(result.code).toBe(78);
    await golden('backend-binary-missing', result, folder);
  });

  it('without any backend: says which plugin to install', async () => {
    const { folder, vms, at } = await place();
    const root = join(folder, 'agent');
    for (const part of ['bin', 'dist', 'package.json', 'oclif.manifest.json']) {
      cpSync(join(AGENT_ROOT, part), join(root, part), { recursive: true });
    }
    symlinkSync(join(AGENT_ROOT, 'node_modules'), join(root, 'node_modules'));
    const result = await runCli(['run', '--local', vms, '--guest-network', 'user', ...at], { root });
    expect(result.code).toBe(78);
    await golden('no-backend', result, folder);
  });

  it('beside another one on its state directory, or in its run directory', async () => {
    const { folder, flags, at } = await place();
    startAgent(flags());
    const status = await until(async () => {
      const { code, stdout } = await runCli(['status', '--json', ...at]);
      return code === 0 ? (JSON.parse(stdout) as StatusView) : undefined;
    });
    const nameless = (result: CliResult) => ({
      ...result,
      stderr: result.stderr.replace(`pid ${status.pid}`, 'pid 4711'),
    });
    const second = await runCli(['run', ...flags('state', 'run2')]);
    expect(second.code).toBe(75);
    expect(second.stderr).toContain(`pid ${status.pid}`);
    await golden('second-agent', nameless(second), folder);
    const third = await runCli(['run', ...flags('state2')]);
    expect(third.code).toBe(75);
    // Refused before anything was done: nothing is pinned, no record could be read, nothing could be booted.
    expect(readdirSync(join(folder, 'state2'))).toEqual(['lock']);
    await golden('run-dir-taken', nameless(third), folder);
  });
});

describe('an agent whose sockets have no place', () => {
  it('where somebody else answers or something else stands: refused before anything was done', async () => {
    const { folder, flags } = await place();
    const run = join(folder, 'run');
    mkdirSync(run);
    const stranger = createServer((socket) => socket.destroy());
    onTestFinished(() => void stranger.close());
    await new Promise<void>((resolve) => stranger.listen(join(run, 'act.sock'), resolve));
    const answered = await runCli(['run', ...flags()]);
    expect(answered.code).toBe(75);
    expect(readdirSync(join(folder, 'state'))).toEqual(['lock']);
    await golden('socket-answered', answered, folder);
    writeFileSync(join(run, 'admin.sock'), 'mine');
    const inTheWay = await runCli(['run', ...flags()]);
    expect(inTheWay.code).toBe(73);
    expect(readdirSync(join(folder, 'state'))).toEqual(['lock']);
    await golden('socket-in-the-way', inTheWay, folder);
  });
});

describe('a command without its agent', () => {
  it.each([['status'], ['vm list'], ['vm show web-1'], ['vm stop web-1'], ['vm logs web-1'], ['vm console web-1']])(
    '%s: says how to start one',
    async (line) => {
      const folder = tempFolder();
      const result = await runCli([...line.split(' '), '--run-dir', folder]);
      expect(result.code).toBe(69);
      expect(result.stdout).toBe('');
      expect(result.stderr.replace(/\n\s+/g, ' ')).toContain(`start it with "eitri-agent run --run-dir ${folder}"`);
    },
  );
});

describe('VMs that can not be', () => {
  it('say why, in one sentence each, and the others go on', async () => {
    const { folder, vms, flags, at } = await place();
    const small = join(folder, 'small.raw');
    writeFileSync(small, Buffer.alloc(1024 * 1024, 'x'));
    const large = join(folder, 'large.raw');
    writeFileSync(large, '');
    truncateSync(large, 2 ** 30 + 2 ** 20);
    const put = (name: string, spec: string): void => {
      const text = `apiVersion: eitri/v1\nkind: VirtualMachine\nmetadata: {name: "${name}"}\nspec: {memory: 64MiB, disk: 1GiB, ${spec}}\n`;
      writeFileSync(join(vms, `${name.replaceAll(/\W/g, '_')}.yaml`), text);
    };
    const image = (path: string, more = ''): string => `image: {url: "file://${path}", format: raw${more}}`;
    put('missing', image(join(folder, 'none.raw')));
    put('digest', image(small, `, sha256: ${createHash('sha256').update('other').digest('hex')}`));
    put('shrunk', image(large));
    put('../x', image(small));
    startAgent(flags());
    const failed = async (name: string): Promise<VmView> =>
      await until(
        async () => {
          const { code, stdout } = await runCli(['vm', 'show', name, '--json', ...at]);
          const vm = code === 0 ? (JSON.parse(stdout) as VmView) : undefined;
          return vm?.phase === 'Failed' ? vm : undefined;
        },
        { timeoutMs: 60_000, everyMs: 200 },
      );
    const reasons = { missing: 'ImageNotFound', digest: 'ImageDigestMismatch', shrunk: 'DiskTooSmall' };
    for (const [name, reason] of Object.entries(reasons)) {
      expect((await failed(name)).reason).toBe(reason);
      const result = await runCli(['vm', 'start', name, '--wait', '--timeout', '20s', ...at]);
      expect(result.code).toBe(1);
      await golden(`vm-${name}`, result, folder);
    }
    const status = await runCli(['status', '--json', ...at]);
    const { issues } = JSON.parse(status.stdout) as StatusView;
    expect(issues).toHaveLength(1);
    await expect(`${JSON.stringify(issues, null, 2).replaceAll(folder, '/folder')}\n`).toMatchFileSnapshot(
      '../../golden/cli/issue-bad-id.json',
    );
    const shownStatus = await runCli(['status', ...at]);
    await expect(steady(shownStatus.stdout.replaceAll(folder, '/folder'))).toMatchFileSnapshot(
      '../../golden/cli/status-with-an-issue.txt',
    );
    for (const line of shownStatus.stdout.split('\n')) {
      if (/^(?:note)? {2,}/.test(line)) expect(line.length).toBeLessThanOrEqual(80);
    }
    const badId = join(vms, '___x.yaml');
    const refused = await runCli(['vm', 'create', '-f', badId, ...at]);
    expect(refused.code).toBe(65);
    await golden('vm-bad-id', refused, folder);
    const plan = await runCli(['plan', ...at]);
    expect(plan.code).toBe(2);
    expect(plan.stdout).toMatch(/^digest: wanted running, is Failed\n {2}stays +ImageDigestMismatch: /m);
    const why = await runCli(['vm', 'explain', 'digest', ...at]);
    expect(why.stdout).toMatch(/^ {2}failed +step fetchImage, ImageDigestMismatch, not tried again as it is,$/m);
    const draft = join(folder, 'draft.yaml');
    writeFileSync(
      draft,
      'apiVersion: eitri/v1\nkind: VirtualMachine\nmetadata: {name: new}\nspec:\n  image: x\n  memroy: 1GiB\n  cpus: 0\n',
    );
    const bad = await runCli(['plan', '-f', draft, ...at]);
    expect([bad.code, bad.stdout]).toEqual([65, '']);
    // Where lines break depends on how long the folder's name is.
    const told = bad.stderr.replaceAll(draft, 'draft').replace(/\s+/g, ' ');
    expect(told).toMatch(/^error: draft:7: spec\.cpus: .* draft:6: spec\.memroy: .*memory/);
    const unknown = await runCli(['vm', 'show', 'shrank', ...at]);
    expect(unknown.code).toBe(66);
    await golden('vm-unknown', unknown, folder);
  });
});
