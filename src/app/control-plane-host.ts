/**
 * What a control plane is given of a composed run: who this agent is, its report, and its guests' consoles.
 */
import { CONTRACT_VERSION } from '@eitri/core/contracts';
import type { AgentHello, ControlPlaneHost, HostCaps, HostFacts } from '@eitri/core/contracts';
import { memoryCap } from '@eitri/core/reconcile';
import type { Composition, Ground } from './compose.js';
import type { AgentConfig } from './config.js';

/** What this host offers at the most: the caps, and of its memory what the reserve leaves. */
export function capsOf(config: AgentConfig, facts: Pick<HostFacts, 'memoryMib'>): HostCaps {
  const policy = { maxMemoryMib: config['max-mem-mb'], memoryReserveMib: config['memory-reserve'] };
  const memoryMib = memoryCap(policy, facts.memoryMib)?.most ?? 0;
  return { vcpus: config['max-vcpus'], memoryMib, diskGib: config['max-disk-gb'] };
}

export function makeControlPlaneHost(of: {
  readonly ground: Pick<Ground, 'config' | 'facts'>;
  readonly composition: Pick<Composition, 'platform' | 'engine' | 'consoles'>;
  readonly version: string;
}): ControlPlaneHost {
  const { platform, engine, consoles } = of.composition;
  const hello: AgentHello = {
    version: of.version,
    contract: CONTRACT_VERSION,
    backend: platform.backend,
    capabilities: platform.capabilities,
    caps: capsOf(of.ground.config, of.ground.facts),
    hostNetworks: platform.hostNetworks,
    host: of.ground.facts,
  };
  return {
    hello: () => hello,
    report: () => engine.report(),
    onReport: (listener) => engine.onReport(listener),
    // eslint-disable-next-line @typescript-eslint/require-await -- what `attach` throws must be a rejection
    openConsole: async (uid, attach) => consoles.attach(uid, attach),
  };
}
