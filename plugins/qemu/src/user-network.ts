/**
 * Publishes ports of guests that sit on QEMU's user-mode network: the VMM itself listens on the host (`hostfwd`).
 *
 * The running QEMU is the only truth about what is published: it is asked each time, so that an agent which was
 * restarted sees what its predecessor did, and a port that stays is not touched and keeps its connections. QEMU says of
 * a rule that failed no more than that it failed, as text and not as an error; so the address is tried by a bind of our
 * own first, which tells a port that is taken from an address that is not this host's.
 *
 * Only IPv4: QEMU 7.2 refuses `[::1]` by "Bad host address".
 */
import { createSocket } from 'node:dgram';
import { createServer, isIPv4 } from 'node:net';
import type { BackendHost, Exposure, PortProtocol, PortPublisher, PublishState, VmUid } from '@eitri/core/contracts';
import { FIRST_NETDEV } from './arguments.js';
import { qmpSocketOf, type GuestPaths } from './guest-files.js';
import type { GuestProcesses } from './guest-process.js';
import type { QmpClients } from './qmp.js';

const QMP_LIMIT_MS = 5_000;
/** DHCP's ports: a guest that answers there would answer for the host's own network. */
const NEVER: ReadonlySet<number> = new Set([67, 68]);

/** A rule as QEMU lists it. */
export interface Forward {
  readonly protocol: PortProtocol;
  readonly hostAddress: string;
  readonly hostPort: number;
  readonly guestPort: number;
}

/** Reads the answer to `info usernet`; connections, which it lists too, are passed over. */
export function parseForwards(text: string): readonly Forward[] {
  const forwards: Forward[] = [];
  for (const line of text.split(/\r?\n/)) {
    const match = /^\s*(TCP|UDP)\[HOST_FORWARD\]\s+\d+\s+(\S+)\s+(\d+)\s+\S+\s+(\d+)\s/.exec(line);
    if (match === null) continue;
    const [, protocol, address, hostPort, guestPort] = match;
    forwards.push({
      protocol: protocol === 'UDP' ? 'udp' : 'tcp',
      hostAddress: address === '*' ? '0.0.0.0' : (address ?? ''),
      hostPort: Number(hostPort),
      guestPort: Number(guestPort),
    });
  }
  return forwards;
}

const placeOf = (f: Omit<Forward, 'guestPort'>): string => `${f.protocol}:${f.hostAddress}:${f.hostPort.toString()}`;
const keyOf = (f: Forward): string => `${placeOf(f)}-${f.guestPort.toString()}`;

export interface ForwardPlan {
  readonly remove: readonly Forward[];
  readonly add: readonly Exposure[];
  /** One a wanted exposure that can't be, by its place in the list. */
  readonly refused: ReadonlyMap<number, string>;
}

/** What has to change so that exactly the wanted ports are published. Pure. */
export function planForwards(wanted: readonly Exposure[], present: readonly Forward[]): ForwardPlan {
  const refused = new Map<number, string>();
  const accepted = new Map<string, Exposure>();
  for (const [at, exposure] of wanted.entries()) {
    const place = placeOf(exposure);
    if (!isIPv4(exposure.hostAddress)) {
      refused.set(
        at,
        `${exposure.hostAddress} is not an IPv4 address: QEMU's user-mode network publishes on those only`,
      );
    } else if (NEVER.has(exposure.hostPort)) {
      refused.set(at, `port ${exposure.hostPort.toString()} belongs to DHCP and is never published`);
    } else if (accepted.has(place)) {
      refused.set(at, `${place} is declared twice`);
    } else accepted.set(place, exposure);
  }
  const wantedKeys = new Set([...accepted.values()].map(keyOf));
  const presentKeys = new Set(present.map(keyOf));
  return {
    remove: present.filter((forward) => !wantedKeys.has(keyOf(forward))),
    add: [...accepted.values()].filter((exposure) => !presentKeys.has(keyOf(exposure))),
    refused,
  };
}

/** Whether a socket can be bound there now, or the system's code for why not. */
export type ProbePort = (place: Omit<Forward, 'guestPort'>) => Promise<string | undefined>;

export const probePort: ProbePort = ({ protocol, hostAddress, hostPort }) =>
  new Promise((resolve) => {
    const failed = (error: NodeJS.ErrnoException): void => resolve(error.code ?? 'EIO');
    if (protocol === 'udp') {
      const socket = createSocket('udp4');
      socket.once('error', (error: NodeJS.ErrnoException) => {
        socket.close();
        failed(error);
      });
      socket.bind({ address: hostAddress, port: hostPort, exclusive: true }, () =>
        socket.close(() => resolve(undefined)),
      );
      return;
    }
    const server = createServer((connection) => connection.destroy());
    server.once('error', failed);
    server.listen({ host: hostAddress, port: hostPort, exclusive: true }, () => server.close(() => resolve(undefined)));
  });

interface Outcome {
  readonly state: 'busy' | 'refused';
  readonly why: string;
}

function outcomeOf(code: string, exposure: Exposure): Outcome {
  const place = placeOf(exposure);
  switch (code) {
    case 'EADDRINUSE':
      return { state: 'busy', why: `${place} is held by another process` };
    case 'EACCES':
    case 'EPERM':
      return { state: 'refused', why: `${place} needs more rights than the agent has: ports below 1024 are root's` };
    case 'EADDRNOTAVAIL':
      return { state: 'refused', why: `${exposure.hostAddress} is not an address of this host` };
    default:
      return { state: 'refused', why: `${place} can't be listened on: ${code}` };
  }
}

export class UserNetworkPublisher implements PortPublisher {
  constructor(
    private readonly host: BackendHost,
    private readonly qmp: QmpClients,
    private readonly processes: GuestProcesses,
    private readonly paths: GuestPaths,
    private readonly probe: ProbePort = probePort,
  ) {}

  readonly publish = async (
    uid: VmUid,
    exposures: readonly Exposure[],
    signal: AbortSignal,
  ): Promise<readonly PublishState[]> => {
    const socket = qmpSocketOf(await this.paths.of(uid));
    const plan = planForwards(exposures, await this.present(socket, signal));
    for (const forward of plan.remove)
      await this.ask(socket, `hostfwd_remove ${FIRST_NETDEV} ${placeOf(forward)}`, signal);
    const failed = new Map<string, Outcome>();
    for (const exposure of plan.add) {
      const outcome = await this.add(socket, exposure, signal);
      if (outcome !== undefined) failed.set(keyOf(exposure), outcome);
    }
    const present = new Set((await this.present(socket, signal)).map(keyOf));
    return exposures.map((exposure, at): PublishState => {
      const why = plan.refused.get(at);
      if (why !== undefined) return { exposure, state: 'refused', why };
      if (present.has(keyOf(exposure))) return { exposure, state: 'published' };
      return { exposure, ...(failed.get(keyOf(exposure)) ?? lost(exposure)) };
    });
  };

  readonly release = async (uid: VmUid, signal: AbortSignal): Promise<void> => {
    const paths = await this.paths.of(uid);
    // The ports are the VMM's own: without one, none is held.
    const process = await this.processes.observe(paths, signal);
    if (process.state === 'absent' || process.state === 'exited') return;
    const socket = qmpSocketOf(paths);
    for (const forward of await this.present(socket, signal)) {
      await this.ask(socket, `hostfwd_remove ${FIRST_NETDEV} ${placeOf(forward)}`, signal);
    }
    const left = await this.present(socket, signal);
    if (left.length > 0) {
      throw this.host.errors.retryable(`release the ports of ${uid}: still published: ${left.map(placeOf).join(', ')}`);
    }
  };

  private async add(socket: string, exposure: Exposure, signal: AbortSignal): Promise<Outcome | undefined> {
    const code = await this.probe(exposure);
    if (code !== undefined) return outcomeOf(code, exposure);
    const rule = `${placeOf(exposure)}-:${exposure.guestPort.toString()}`;
    const said = await this.ask(socket, `hostfwd_add ${FIRST_NETDEV} ${rule}`, signal);
    if (said === '') return undefined;
    this.host.logger.debug('qemu.port.notPublished', { rule, said });
    // The bind of our own went well a moment ago: whoever was quicker may leave again.
    return said.startsWith('Could not set up') ? lost(exposure) : { state: 'refused', why: said };
  }

  private async present(socket: string, signal: AbortSignal): Promise<readonly Forward[]> {
    return parseForwards(await this.ask(socket, 'info usernet', signal));
  }

  private async ask(socket: string, line: string, signal: AbortSignal): Promise<string> {
    const command = { execute: 'human-monitor-command', arguments: { 'command-line': line } };
    const [answer] = await this.qmp.run(socket, [command], QMP_LIMIT_MS, signal);
    if (typeof answer !== 'string')
      throw this.host.errors.retryable(`qmp answered "${line}" with something other than text`);
    return answer.trim();
  }
}

const lost = (exposure: Exposure): Outcome => ({
  state: 'busy',
  why: `${placeOf(exposure)} was taken while it was being published`,
});
