/**
 * The built agent over the guests' network of a host of its own, a namespace: what it refuses, and that it made nothing by
 * then; what it puts up, finds again, repairs and takes down. Needs root, QEMU and the network's tools; boots no guest.
 */
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { wrap } from '../../../src/app/complaint.js';
import { AGENT_ROOT, runCli, shown, type CliResult } from '../../support/cli.js';
import { Namespace } from '../../support/netenv/namespace.js';
import { tempFolder } from '../../support/temp.js';
import { until } from '../../support/until.js';

const SUBNET = '10.77.5.0/24';

class Host {
  readonly folder = tempFolder();
  readonly vms = join(this.folder, 'vms');
  readonly at = ['--state-dir', join(this.folder, 'state'), '--run-dir', join(this.folder, 'run')];

  private constructor(readonly net: Namespace) {}

  static async make(): Promise<Host> {
    const net = await Namespace.make();
    onTestFinished(() => net.remove());
    const host = new Host(net);
    // dnsmasq's user has to pass.
    chmodSync(host.folder, 0o711);
    expect((await runCli(['local', 'init', host.vms])).code).toBe(0);
    return host;
  }

  runArgs(cidr = SUBNET): string[] {
    return ['run', '--local', this.vms, '--backend', 'qemu', '--bridge-cidr', cidr, ...this.at];
  }

  /** A command on this host; `prefix` are words before it. */
  cli(args: readonly string[], prefix: readonly string[] = []): Promise<CliResult> {
    return runCli(args, { prefix: ['ip', 'netns', 'exec', this.net.name, ...prefix] });
  }

  /** An agent in the background, once it has started. */
  async start(
    ...more: readonly string[]
  ): Promise<{ readonly stop: () => Promise<void>; readonly said: () => string }> {
    const child = this.net.spawn(process.execPath, join(AGENT_ROOT, 'bin', 'run.js'), ...this.runArgs(), ...more);
    let said = '';
    child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString('utf8')));
    const ended = new Promise((resolve) => child.once('exit', resolve));
    await until(() => {
      if (child.exitCode !== null) throw new Error(said);
      return said.includes('"agent.started"');
    });
    const stop = async (): Promise<void> => {
      child.kill('SIGTERM');
      await ended;
    };
    return { stop, said: () => said };
  }

  async devices(): Promise<readonly string[]> {
    return (await this.net.json('link show')).map((link) => String(link['ifname'])).sort();
  }

  rules(): Promise<string> {
    return this.net.exec('nft', 'list', 'ruleset');
  }
}

const golden = async (name: string, result: CliResult, folder: string): Promise<void> => {
  const stderr = result.stderr.replace(/\(pid \d+\)/, '(pid 4711)');
  const text = shown({ ...result, stderr }, folder, (sentence) => wrap(sentence, 80));
  for (const line of text.split('\n')) if (line.trim().includes(' ')) expect(line.length).toBeLessThanOrEqual(80);
  await expect(text).toMatchFileSnapshot(`../../golden/cli/error-network-${name}.txt`);
};

function readNames(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

async function refused(host: Host, name: string, code: number, result: CliResult): Promise<void> {
  expect(result.stderr).not.toMatch(/^\s+at /m);
  expect({ code: result.code, stderr: result.stderr }).toMatchObject({ code });
  await golden(name, result, host.folder);
  expect((await host.devices()).filter((device) => device.startsWith('ei'))).toEqual([]);
  expect((await host.rules()).trim()).toBe('');
  expect(readNames(join(host.folder, 'run'))).not.toContain('dhcp');
  expect(readNames(join(host.folder, 'state'))).not.toContain('guest-cidr');
}

describe('a host that can not give guests its network: the agent does not start, and made nothing', () => {
  it.each(['dnsmasq', 'nft', 'ip'])('%s is missing', async (tool) => {
    const host = await Host.make();
    // The runner looks in the usual folders after PATH: there nothing may be either.
    const empty = tempFolder();
    const usual = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
    const hide = `for d in ${usual.join(' ')}; do [ ! -e $d/${tool} ] || mount --bind ${empty}/none $d/${tool}; done`;
    writeFileSync(join(empty, 'none'), '', { mode: 0o644 });
    const prefix = ['unshare', '--mount', 'sh', '-c', `${hide}; exec "$@"`, 'sh'];
    await refused(host, `no-${tool}`, 78, await host.cli(host.runArgs(), prefix));
  });

  it('the agent may not configure networks', async () => {
    const host = await Host.make();
    const prefix = ['setpriv', '--bounding-set=-net_admin', '--inh-caps=-net_admin'];
    await refused(host, 'no-rights', 77, await host.cli(host.runArgs(), prefix));
  });

  it.each([
    ['cidr-small', '10.77.5.0/31'],
    ['cidr-host-bits', '10.77.5.1/24'],
    ['cidr-loopback', '127.0.0.0/16'],
  ])('the subnet can not be one: %s', async (name, cidr) => {
    const host = await Host.make();
    await refused(host, name, 78, await host.cli(host.runArgs(cidr)));
  });

  it('the subnet is where the host has its own address, or what a VPN reaches', async () => {
    const host = await Host.make();
    await host.net.ip('link add up0 type veth peer name up1');
    await host.net.ip('address add 10.77.5.9/24 dev up0');
    await host.net.ip('link set up0 up');
    await host.net.ip('link set up1 up');
    await refused(host, 'overlap', 78, await host.cli(host.runArgs()));
  });

  it('another DHCP server has port 67', async () => {
    const host = await Host.make();
    host.net.spawn('socat', 'UDP4-RECVFROM:67,reuseaddr', 'EXEC:cat');
    await until(async () => (await host.net.exec('ss', '-Hlun', 'sport', '=', ':67')).trim() !== '');
    await refused(host, 'port-67', 75, await host.cli(host.runArgs()));
  });

  it('the bridge of a named network is missing', async () => {
    const host = await Host.make();
    await refused(host, 'no-bridge', 78, await host.cli([...host.runArgs(), '--host-network', 'lab=br-lab']));
  });

  it("a stranger's device has the bridge's name: it is left", async () => {
    const host = await Host.make();
    await host.net.ip('link add eitri0 type bridge');
    const result = await host.cli(host.runArgs());
    expect(result.code).toBe(78);
    const control = readFileSync(join(host.folder, 'state', 'control.json'), 'utf8');
    const stateId = /"stateId": ?"([^"]+)"/.exec(control)?.[1];
    const stderr = result.stderr.replace(/\n\s+/g, ' ').replaceAll(stateId ?? '?', 'STATE-ID');
    await golden('foreign-bridge', { ...result, stderr }, host.folder);
    expect(await host.devices()).toEqual(['eitri0', 'lo']);
    expect((await host.rules()).trim()).toBe('');
  });

  it('dnsmasq can not pass to its files', async () => {
    const host = await Host.make();
    mkdirSync(join(host.folder, 'run'), { mode: 0o700 });
    await refused(host, 'run-dir-closed', 78, await host.cli(host.runArgs()));
  });
});

describe("an agent on the guests' network", () => {
  it('puts it up, leaves it standing at its end, and finds it again with the subnet that it had', async () => {
    const host = await Host.make();
    const first = await host.start();
    expect(await host.devices()).toEqual(['eitri0', 'lo']);
    const kept = (await host.rules()).trim();
    expect(kept).toContain(`ip saddr ${SUBNET}`);
    const bridge = async () =>
      (await host.net.json('link show eitri0')).map(({ ifindex, address }) => [ifindex, address]);
    const before = await bridge();
    await first.stop();
    expect(await bridge()).toEqual(before);
    // Another subnet is not in force, is said, and moves nobody.
    const other = await host.cli(['network', 'repair', ...host.at, '--bridge-cidr', '10.99.0.0/24']);
    expect(other.code).toBe(0);
    expect(other.stdout).toContain(`the guests' network ${SUBNET} is up`);
    expect(other.stdout).toContain('--bridge-cidr 10.99.0.0/24 is not in force');
    const second = await host.start();
    await second.stop();
    expect(await bridge()).toEqual(before);
    expect((await host.rules()).trim()).toBe(kept);
    // Its dnsmasq, and nothing else.
    expect((await host.net.pids()).length).toBe(1);
  });

  it('is told of drift at once by network repair, and has put it right', async () => {
    const host = await Host.make();
    const agent = await host.start();
    const whole = await host.cli(['network', 'repair', ...host.at]);
    expect(whole).toMatchObject({ code: 0, stdout: "the guests' network is as it should be\n" });
    await host.net.exec('nft', 'flush', 'ruleset');
    await host.net.ip('link delete eitri0');
    const { code, stdout } = await host.cli(['network', 'repair', '--json', ...host.at]);
    expect(code).toBe(0);
    const { mended } = JSON.parse(stdout) as { readonly mended: readonly string[] };
    expect(mended).toContain('eitri0 was gone and is there again');
    expect(await host.devices()).toEqual(['eitri0', 'lo']);
    expect(await host.rules()).toContain('masquerade');
    // The same is in the events, for whoever was not the one to ask.
    expect((await host.cli(['vm', 'events', ...host.at])).stdout).toContain('network: eitri0 was gone');
    await agent.stop();
  });

  it('has it taken down by network teardown, but not beside itself, and only once', async () => {
    const host = await Host.make();
    const down = (): Promise<CliResult> => host.cli(['network', 'teardown', ...host.at]);
    const unused = await down();
    expect(unused.code).toBe(66);
    await golden('never-used', unused, host.folder);
    const agent = await host.start();
    const beside = await down();
    expect(beside.code).toBe(75);
    await golden('agent-runs', beside, host.folder);
    await agent.stop();
    expect(await down()).toMatchObject({ code: 0, stderr: '' });
    expect(await host.devices()).toEqual(['lo']);
    expect((await host.rules()).trim()).toBe('');
    expect(await host.net.pids()).toEqual([]);
    // A lock's file stays: one that is made anew would be another lock.
    expect(readNames(join(host.folder, 'run'))).toEqual(['lock']);
    expect(readNames(join(host.folder, 'state'))).not.toContain('guest-cidr');
    expect((await down()).code).toBe(0);
  });

  it('takes it down at its end where it was told to', async () => {
    const host = await Host.make();
    const agent = await host.start('--teardown');
    await agent.stop();
    expect(await host.devices()).toEqual(['lo']);
    expect(await host.net.pids()).toEqual([]);
  });
});

describe('the doctor of such a host', () => {
  interface Told {
    readonly what: string;
    readonly level: string;
    readonly detail: string;
    readonly next?: string;
  }
  const doctor = async (host: Host): Promise<ReadonlyMap<string, Told>> => {
    const { stdout } = await host.cli(['doctor', '--json', '--backend', 'qemu', '--bridge-cidr', SUBNET, ...host.at]);
    return new Map((JSON.parse(stdout) as readonly Told[]).map((check) => [check.what, check]));
  };
  const NETWORK = ['guest network', 'network tools', 'forwarding', 'bridge', 'guest rules', 'dnsmasq', 'overlaps'];

  it('finds all well before the first start and beside the agent, and makes nothing', async () => {
    const host = await Host.make();
    const before = await doctor(host);
    expect(NETWORK.map((what) => before.get(what)?.level)).toEqual(NETWORK.map(() => 'ok'));
    expect(await host.devices()).toEqual(['lo']);
    expect((await host.rules()).trim()).toBe('');
    const agent = await host.start();
    const beside = await doctor(host);
    expect(NETWORK.map((what) => beside.get(what)?.level)).toEqual(NETWORK.map(() => 'ok'));
    expect(beside.get('bridge')?.detail).toBe('eitri0 has 10.77.5.1/24');
    await agent.stop();
  });

  it('names what drifted with what to type, and what is in the way', async () => {
    const host = await Host.make();
    const agent = await host.start();
    await agent.stop();
    await host.net.exec('nft', 'flush', 'ruleset');
    await host.net.exec('nft', 'add table ip filter');
    await host.net.exec('nft', 'add chain ip filter FORWARD { type filter hook forward priority 0; policy drop; }');
    await host.net.ip('link set eitri0 down');
    for (const pid of await host.net.pids()) process.kill(pid, 'SIGKILL');
    await until(async () => (await host.net.pids()).length === 0);
    await host.net.ip('link add up0 type veth peer name up1');
    await host.net.ip('address add 10.77.5.9/24 dev up0');
    const told = await doctor(host);
    for (const what of ['bridge', 'guest rules', 'dnsmasq']) {
      expect(told.get(what)).toMatchObject({ level: 'warn', next: 'eitri-agent network repair' });
    }
    expect(told.get('forwarding')).toMatchObject({ level: 'warn' });
    expect(told.get('forwarding')?.detail).toContain('table ip filter, chain FORWARD');
    expect(told.get('overlaps')).toMatchObject({ level: 'fail', next: 'choose another with --bridge-cidr' });
  });
});
