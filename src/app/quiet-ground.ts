/**
 * What a command starts from that looks at a host, or acts on it, and is not its agent: the state as it stands, no log, and
 * no event for anybody.
 */
import type { HostFacts } from '@eitri/core/contracts';
import { FileDesiredStore } from '../desired/index.js';
import { diskFiles, SystemClock, SystemRandom, type ExecaRunner } from '../host/index.js';
import { ControlFile, FileStateStore, StatePaths } from '../state/index.js';
import type { ControlState } from '../state/index.js';
import type { Ground } from './compose.js';
import type { AgentConfig } from './config.js';
import type { Places } from './places.js';
import { silent } from './run-log.js';

export interface QuietGround {
  readonly ground: Ground;
  /** Undefined: no agent has used this state directory yet. */
  readonly control: ControlState | undefined;
}

/** Reads; makes and writes nothing. */
export async function quietGround(of: {
  readonly config: AgentConfig;
  readonly places: Places;
  readonly facts: HostFacts;
  readonly runner: ExecaRunner;
}): Promise<QuietGround> {
  const { config, places, facts, runner } = of;
  const paths = new StatePaths(places);
  const random = new SystemRandom();
  const control = await new ControlFile(paths.control, random).read();
  const ground: Ground = {
    config,
    facts,
    paths,
    store: new FileStateStore(paths, silent, diskFiles),
    desired: new FileDesiredStore(random, silent, diskFiles, { path: paths.desired, adopt: false }),
    clock: new SystemClock(),
    random,
    runner,
    log: silent,
    userId: process.getuid?.() ?? 0,
    stateId: control?.stateId ?? random.uuid(),
  };
  return { ground, control };
}
