/**
 * What a control plane is given of a composed run: who this agent is, its report, and its guests' consoles.
 */
import { CONTRACT_VERSION } from '@eitri/core/contracts';
import type { AgentHello, ControlPlaneHost, HostCaps } from '@eitri/core/contracts';
import type { Composition, Ground } from './compose.js';
import type { AgentConfig } from './config.js';

export const capsOf = (config: AgentConfig): HostCaps => ({
  vcpus: config['max-vcpus'],
  memoryMib: config['max-mem-mb'],
  diskGib: config['max-disk-gb'],
});

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
    caps: capsOf(of.ground.config),
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
