/**
 * The one door to `ip`: devices, addresses, routes, and changes in batches. A batch is one process for any number of
 * devices, and stops at the first line that fails; what was done before it stays done.
 */
import type { NetworkHost } from '@eitri/core/contracts';
import { parseLinks, type Links } from './links.js';
import { objectOf, parseList, textOf, numberOf } from './parse.js';
import { parseRoutes, type Route } from './routes.js';

export class IpTool {
  constructor(private readonly host: NetworkHost) {}

  async links(signal: AbortSignal): Promise<Links> {
    return parseLinks(await this.json(['-details', 'link', 'show'], signal)) ?? this.garbled('link show');
  }

  async routes(signal: AbortSignal): Promise<readonly Route[]> {
    return parseRoutes(await this.json(['-4', 'route', 'show', 'table', 'all'], signal)) ?? this.garbled('route show');
  }

  /** IPv4 addresses of a device, as `10.77.1.1/24`. */
  async addresses(device: string, signal: AbortSignal): Promise<readonly string[]> {
    const list = parseList(await this.json(['-4', 'address', 'show', 'dev', device], signal));
    if (list === undefined) return this.garbled('address show');
    return list.flatMap((entry) => {
      const infos = entry['addr_info'];
      return Array.isArray(infos) ? infos.flatMap((info) => addressOf(objectOf({ info }, 'info'))) : [];
    });
  }

  async batch(lines: readonly string[], signal: AbortSignal): Promise<void> {
    if (lines.length === 0) return;
    await this.change(lines, ['-batch', '-'], lines, signal);
  }

  /** The devices as they stand behind these lines: the look is the batch's own last line, and costs no other process. */
  async linksAfter(lines: readonly string[], signal: AbortSignal): Promise<Links> {
    if (lines.length === 0) return this.links(signal);
    const all = [...lines, 'link show'];
    return (
      parseLinks(await this.change(all, ['-json', '-details', '-batch', '-'], lines, signal)) ??
      this.garbled('link show')
    );
  }

  /** `told`: the lines that are named where it fails. */
  private async change(
    lines: readonly string[],
    args: readonly string[],
    told: readonly string[],
    signal: AbortSignal,
  ): Promise<string> {
    const input = lines.map((line) => `${line}\n`).join('');
    try {
      return (await this.host.runner.run({ command: 'ip', args, input }, signal)).stdout;
    } catch (cause) {
      throw this.host.errors.retryable(`change devices (${told.join('; ')})`, { cause, code: 'NetworkFailed' });
    }
  }

  private async json(args: readonly string[], signal: AbortSignal): Promise<string> {
    return (await this.host.runner.run({ command: 'ip', args: ['-json', ...args] }, signal)).stdout;
  }

  private garbled(what: string): never {
    throw this.host.errors.retryable(`ip -json ${what} printed something other than what this agent reads`);
  }
}

function addressOf(info: Parameters<typeof textOf>[0]): readonly string[] {
  const address = textOf(info, 'local');
  const prefix = numberOf(info, 'prefixlen');
  return address === undefined || prefix === undefined ? [] : [`${address}/${prefix.toString()}`];
}
