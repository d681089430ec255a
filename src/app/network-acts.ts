/**
 * What an operator does to the guests' network of a host on which no agent runs: it is composed as a start would, with
 * the locks of state and run directory held, and without an engine. Beside a running agent they refuse.
 */
import { EXIT, exitError } from '@eitri/core/kit';
import { EventLog } from '@eitri/core/reconcile';
import type { PluginRoot } from '../backends/index.js';
import { ExecaRunner, readHostFacts, realHostSources } from '../host/index.js';
import { FolderLock, GuestCidrFile, makeLockedFolder } from '../state/index.js';
import { compose } from './compose.js';
import type { Composition, Ground } from './compose.js';
import type { AgentConfig } from './config.js';
import { findBackends } from './find-backend.js';
import type { GuestNetwork } from './guest-network.js';
import { tearDown } from './network-teardown.js';
import type { Places } from './places.js';
import { quietGround } from './quiet-ground.js';

export interface NetworkActSources {
  readonly config: AgentConfig;
  readonly places: Places;
  readonly installed: readonly PluginRoot[];
  readonly signal: AbortSignal;
}

export interface NetworkActResult {
  /** A sentence for each thing that was put right. */
  readonly mended: readonly string[];
  /** A sentence, or several lines of them. */
  readonly message: string;
}

/** Puts the network up as a start of the agent would, and mends what drifted. */
export async function repairHostNetwork(sources: NetworkActSources): Promise<NetworkActResult> {
  return await composed(sources, async ({ network, composition, ground }) => {
    await network.check(sources.signal);
    const loaded = await ground.store.loadRecords(sources.signal);
    await network.raise(loaded, sources.signal);
    const mended = await network.repair(sources.signal);
    const up = `the guests' network ${await network.host.guestCidr()} is up`;
    const warnings = composition.events.since(0).map(({ message }) => message);
    return { mended, message: [...new Set([up, ...warnings])].join('\n') };
  });
}

/** Takes all of it down. Rejects while a guest runs, or may. */
export async function tearDownHostNetwork(sources: NetworkActSources): Promise<NetworkActResult> {
  return await composed(sources, async ({ network, composition, ground }) => {
    const cidr = await network.host.guestCidr();
    const cidrFile = new GuestCidrFile(ground.paths.guestCidr);
    const ports = { network, platform: composition.platform, store: ground.store, cidrFile };
    const { forgotten } = await tearDown(ports, sources.signal);
    const next = forgotten ? 'the next start may choose another subnet' : 'VMs keep their addresses in it';
    return { mended: [], message: `the guests' network ${cidr} is down: ${next}` };
  });
}

async function composed<T>(
  { config, places, installed, signal }: NetworkActSources,
  work: (of: {
    readonly network: GuestNetwork;
    readonly composition: Composition;
    readonly ground: Ground;
  }) => Promise<T>,
): Promise<T> {
  const runner = new ExecaRunner();
  const facts = await readHostFacts(realHostSources(runner), signal);
  const { ground, control } = await quietGround({ config, places, facts, runner });
  const { paths, store } = ground;
  if (control === undefined) {
    throw exitError(EXIT.notFound, `no agent has used ${paths.stateDir} yet: there is no guests' network of it`);
  }
  const locks = [FolderLock.acquire(paths.lock, { kind: 'state', path: paths.stateDir }, process.pid)];
  try {
    // dnsmasq's files stand in the run directory: another agent's there must not be taken for ours.
    const runFolder = { kind: 'run', path: paths.runDir } as const;
    await makeLockedFolder(runFolder);
    locks.push(FolderLock.acquire(paths.runLock, runFolder, process.pid));
    await store.prepare();
    const found = await findBackends({ installed, facts, control, paths, config });
    const composition = await compose(ground, found, new EventLog(ground.clock), signal);
    const { guestNetwork } = composition;
    try {
      if (guestNetwork === undefined) {
        throw exitError(
          EXIT.badConfiguration,
          'no network plugin gives guests a network here: each has one of its own',
        );
      }
      return await work({ network: guestNetwork, composition, ground });
    } finally {
      await guestNetwork?.close();
      await composition.dispose();
    }
  } finally {
    for (const lock of locks.reverse()) lock.release();
  }
}
