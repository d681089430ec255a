/**
 * The doctor's eyes on this machine.
 */
import { access, constants, open, stat, statfs } from 'node:fs/promises';
import { errorLine, systemCode, exitError, EXIT } from '@eitri/core/kit';
import type { HostFacts } from '@eitri/core/contracts';
import { EventLog } from '@eitri/core/reconcile';
import { readMarker } from '../control/local/index.js';
import { ExecaRunner, readHostFacts, realHostSources } from '../host/index.js';
import type { PluginRoot } from '../backends/index.js';
import { compose, composeGuestNetwork } from './compose.js';
import type { AgentConfig } from './config.js';
import { examine } from './doctor.js';
import type { Check, DoctorPorts, FoundFile } from './doctor.js';
import { findBackends } from './find-backend.js';
import type { Places } from './places.js';
import { quietGround } from './quiet-ground.js';
import { surveyPlugins } from './plugins-host.js';

export interface DoctorSources {
  readonly config: AgentConfig;
  readonly places: Places;
  readonly installed: readonly PluginRoot[];
  /** Where what was found out about plugins is kept. */
  readonly cacheDir: string;
  readonly agent: DoctorPorts['agent'];
  readonly signal: AbortSignal;
}

/** Examines this machine. Rejects where it is of a kind that no agent runs on. */
export async function examineHost(sources: DoctorSources): Promise<readonly Check[]> {
  const runner = new ExecaRunner();
  const facts = await readHostFacts(realHostSources(runner), sources.signal);
  return await examine(realPorts(sources, facts, runner));
}

function realPorts(sources: DoctorSources, facts: HostFacts, runner: ExecaRunner): DoctorPorts {
  return {
    nodeVersion: process.version,
    os: facts.os,
    userId: process.getuid?.() ?? 0,
    places: sources.places,
    local: sources.config.local,
    look,
    freeBytes: async (path) => {
      const { bavail, bsize } = await statfs(path);
      return bavail * bsize;
    },
    which: runner.which,
    kvm: async () => {
      try {
        // To be allowed to is not enough: only opening it shows a device without its driver.
        await (await open('/dev/kvm', 'r+')).close();
        return { usable: true };
      } catch (error) {
        const code = systemCode(error);
        return { usable: false, why: code === 'ENOENT' ? 'it is not there' : (code ?? errorLine(error)) };
      }
    },
    backend: () => checkBackend(sources, facts, runner),
    plugins: () => surveyPlugins(sources.installed, sources, { tryAll: true, signal: sources.signal }),
    network: () => lookAtNetwork(sources, facts, runner),
    agent: sources.agent,
    marker: async (folder) => {
      const reading = await readMarker(folder);
      switch (reading.kind) {
        case 'marker':
          return { lineage: reading.marker.lineage };
        case 'missing':
          throw exitError(EXIT.badInput, `${folder} has no marker .eitri-lineage, so it says nothing`);
        case 'unreadable':
          throw exitError(EXIT.badInput, `the marker of ${folder} can't be read: ${reading.why}`);
      }
    },
  };
}

async function look(path: string): Promise<FoundFile | undefined> {
  try {
    const found = await stat(path);
    const writable = await access(path, constants.W_OK).then(
      () => true,
      () => false,
    );
    return {
      kind: found.isDirectory() ? 'folder' : found.isFile() ? 'file' : 'other',
      userId: found.uid,
      writable,
      passable: (found.mode & 0o001) !== 0,
    };
  } catch (error) {
    if (systemCode(error) === 'ENOENT' || systemCode(error) === 'ENOTDIR') return undefined;
    throw error;
  }
}

/** As it stands; whether or not its agent runs. */
async function lookAtNetwork(
  { config, places, installed, signal }: DoctorSources,
  facts: HostFacts,
  runner: ExecaRunner,
): ReturnType<DoctorPorts['network']> {
  const { ground, control } = await quietGround({ config, places, facts, runner });
  const { network, networkBecause } = await findBackends({
    installed,
    facts,
    control,
    paths: ground.paths,
    config,
  });
  if (network === undefined) return undefined;
  const { guestNetwork, dispose } = await composeGuestNetwork(ground, network, new EventLog(ground.clock), signal);
  try {
    const { name, host } = guestNetwork;
    return { name, because: networkBecause, cidr: await host.guestCidr(), findings: await host.examine(signal) };
  } finally {
    await guestNetwork.close();
    await dispose();
  }
}

/** As a start does it, but for pinning; what is composed is let go at once. */
async function checkBackend(
  { config, places, installed, signal }: DoctorSources,
  facts: HostFacts,
  runner: ExecaRunner,
): ReturnType<DoctorPorts['backend']> {
  const { ground, control } = await quietGround({ config, places, facts, runner });
  const found = await findBackends({ installed, facts, control, paths: ground.paths, config });
  const { platform, dispose } = await compose(ground, found, new EventLog(ground.clock), signal);
  await dispose();
  const { vmmVersion, notes } = platform.capabilities;
  return { name: found.plugin.name, because: found.because, vmm: vmmVersion, notes };
}
