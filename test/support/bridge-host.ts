/**
 * An operator's host whose guests are on its own network: a namespace, the agent in it, and a look at what stands there.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Namespace } from './netenv/namespace.js';
import { Operator } from './operator.js';

const run = promisify(execFile);

export interface Lease {
  /** Seconds since 1970. */
  readonly expires: number;
  readonly mac: string;
  readonly address: string;
}

export class BridgeHost {
  readonly operator: Operator;
  /** Whose public half guests are given. */
  readonly key: string;

  private constructor(readonly net: Namespace) {
    this.operator = new Operator({ host: net });
    this.key = join(this.operator.folder, 'key');
  }

  static async make(): Promise<BridgeHost> {
    const host = new BridgeHost(await Namespace.make());
    await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'operator', '-f', host.key]);
    return host;
  }

  get publicKey(): string {
    return readFileSync(`${this.key}.pub`, 'utf8').trim();
  }

  /** The web page of the guest at an address, as the host gets it. */
  page(address: string): Promise<string> {
    const asked = `printf 'GET / HTTP/1.0\\r\\n\\r\\n' | socat -t 5 - TCP4:${address}:80,connect-timeout=5`;
    return this.net.exec('sh', '-c', asked);
  }

  /** Runs a line in the guest at an address, as its root. */
  ssh(address: string, line: string): Promise<string> {
    const quiet = ['-o', 'UserKnownHostsFile=/dev/null', '-o', 'StrictHostKeyChecking=no', '-o', 'LogLevel=ERROR'];
    const options = ['-i', this.key, ...quiet, '-o', 'BatchMode=yes', '-o', 'ConnectTimeout=20', '-F', 'none'];
    return this.net.exec('ssh', ...options, `root@${address}`, line);
  }

  leases(): readonly Lease[] {
    const lines = readFileSync(join(this.operator.run, 'dhcp', 'leases'), 'utf8')
      .split('\n')
      .filter(Boolean);
    return lines.map((line) => {
      const [expires = '', mac = '', address = ''] = line.split(' ');
      return { expires: Number(expires), mac, address };
    });
  }

  async taps(): Promise<readonly string[]> {
    const links = await this.net.json('link show');
    return links.map((link) => String(link['ifname'])).filter((name) => /^ei[tnx]-/.test(name));
  }

  rules(): Promise<string> {
    return this.net.exec('nft', 'list', 'ruleset');
  }

  async remove(): Promise<void> {
    await this.operator.remove();
    await this.net.remove();
  }
}
