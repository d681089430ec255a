/**
 * A pump as small as the contract allows, and ways to break it, one promise each: they show that the suite would
 * notice.
 */
import type { Duplex } from 'node:stream';
import type { Clock, ConsoleSource, PumpHooks, VmUid } from '@eitri/core/contracts';

/** A promise of `PumpHooks`, and the way in which it is broken. */
export type PumpHooksFault =
  | 'waits for the line'
  | 'rejects without a line'
  | 'starts a pump at each ensure'
  | 'stops reading after a while'
  | 'rejects a stop of nothing'
  | 'resolves stop at once'
  | 'closes with bytes unread'
  | 'gives up at the end of the stream'
  | 'logs history again'
  | 'looks for the line after stop'
  | 'stops connected pumps only'
  | 'pumps one boot only'
  | 'forgets an ensure during stop'
  | 'starts over an old pump'
  | 'stops everybody'
  | 'logs into one file';

/** Every fault, for a test that goes through all of them. */
export const pumpHooksFaults: readonly PumpHooksFault[] = [
  'waits for the line',
  'rejects without a line',
  'starts a pump at each ensure',
  'stops reading after a while',
  'rejects a stop of nothing',
  'resolves stop at once',
  'closes with bytes unread',
  'gives up at the end of the stream',
  'logs history again',
  'looks for the line after stop',
  'stops connected pumps only',
  'pumps one boot only',
  'forgets an ensure during stop',
  'starts over an old pump',
  'stops everybody',
  'logs into one file',
];

const RETRY_MS = 20;

interface Pump {
  readonly stopping: AbortController;
  readonly connected: Promise<void>;
  running: Promise<void>;
  stream?: Duplex;
}

/**
 * A small pump with one fault, or with none: the suite must fail with each, and pass without. What it reads goes to
 * `log`.
 */
export class FaultyPumpHooks implements PumpHooks {
  private readonly pumps = new Map<VmUid, Pump>();
  private readonly stops = new Map<VmUid, Promise<void>>();
  private readonly stopped = new Set<VmUid>();
  private firstUid: VmUid | undefined;

  constructor(
    private readonly source: ConsoleSource,
    private readonly clock: Clock,
    private readonly log: (uid: VmUid, chunk: Buffer) => void,
    private readonly fault: PumpHooksFault | undefined,
  ) {}

  readonly ensure = async (uid: VmUid): Promise<void> => {
    if (this.fault === 'rejects without a line') (await this.source.open(uid, new AbortController().signal)).destroy();
    if (this.fault === 'pumps one boot only' && this.stopped.has(uid)) return;
    if (this.fault !== 'forgets an ensure during stop' && this.fault !== 'starts over an old pump') {
      await this.stops.get(uid);
    }
    if (this.fault === 'starts over an old pump' && this.stops.has(uid)) this.pumps.delete(uid);
    if (this.pumps.has(uid) && this.fault !== 'starts a pump at each ensure') return;
    const pump = this.start(uid);
    this.pumps.set(uid, pump);
    if (this.fault === 'waits for the line') await pump.connected;
  };

  readonly stop = async (uid: VmUid): Promise<void> => {
    const uids = this.fault === 'stops everybody' ? [...this.pumps.keys()] : [uid];
    if (this.fault === 'rejects a stop of nothing' && !this.pumps.has(uid)) throw new Error(`no pump for ${uid}`);
    await Promise.all(uids.map((one) => this.stopOne(one)));
  };

  private async stopOne(uid: VmUid): Promise<void> {
    this.stopped.add(uid);
    const pump = this.pumps.get(uid);
    if (pump === undefined) return;
    if (this.fault === 'stops connected pumps only' && pump.stream === undefined) {
      this.pumps.delete(uid);
      return;
    }
    if (this.fault !== 'looks for the line after stop') pump.stopping.abort(new Error('stopped'));
    if (this.fault === 'closes with bytes unread') pump.stream?.destroy();
    else pump.stream?.end();
    if (this.fault === 'looks for the line after stop' || this.fault === 'resolves stop at once') {
      this.pumps.delete(uid);
      return;
    }
    const over = pump.running.then(() => {
      if (this.pumps.get(uid) === pump) this.pumps.delete(uid);
      this.stops.delete(uid);
    });
    this.stops.set(uid, over);
    await over;
  }

  private start(uid: VmUid): Pump {
    let tell: () => void = () => undefined;
    const connected = new Promise<void>((resolve) => (tell = resolve));
    const pump: Pump = { stopping: new AbortController(), connected, running: Promise.resolve() };
    pump.running = this.run(uid, pump, tell);
    return pump;
  }

  private async run(uid: VmUid, pump: Pump, connected: () => void): Promise<void> {
    const { signal } = pump.stopping;
    const history: Buffer[] = [];
    while (!signal.aborted) {
      try {
        const stream = await this.source.open(uid, signal);
        pump.stream = stream;
        connected();
        if (this.fault === 'logs history again') for (const chunk of [...history]) this.log(uid, chunk);
        await this.read(uid, stream, history);
        if (this.fault === 'gives up at the end of the stream') return;
      } catch {
        // The line is not there yet.
      }
      delete pump.stream;
      await this.clock.sleep(RETRY_MS, signal).catch(() => undefined);
    }
  }

  private async read(uid: VmUid, stream: Duplex, history: Buffer[]): Promise<void> {
    this.firstUid ??= uid;
    const into = this.fault === 'logs into one file' ? this.firstUid : uid;
    let bytes = 0;
    await new Promise<void>((resolve) => {
      stream.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (this.fault === 'stops reading after a while' && bytes > 10_000) stream.pause();
        history.push(chunk);
        this.log(into, chunk);
      });
      stream.once('end', () => stream.destroy());
      stream.once('error', () => undefined);
      stream.once('close', resolve);
    });
  }
}
