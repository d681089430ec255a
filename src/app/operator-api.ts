/**
 * Gives the operator API what it needs of a composed run.
 */
import { AdminServer } from '../admin/index.js';
import type { AdminPorts } from '../admin/index.js';
import type { LocalControlPlane } from '../control/local/index.js';
import type { Composition, Ground } from './compose.js';
import { capsOf } from './control-plane-host.js';

/** Opens the API's sockets. */
export async function startOperatorApi(of: {
  readonly ground: Ground;
  readonly composition: Composition;
  readonly control: LocalControlPlane;
  readonly version: string;
}): Promise<AdminServer> {
  const { config, clock, log, paths, facts } = of.ground;
  const { engine, desired, consoles, events, platform, guestNetwork } = of.composition;
  const agentFacts = {
    version: of.version,
    pid: process.pid,
    startedAt: clock.now(),
    host: facts,
    stateDir: paths.stateDir,
    runDir: paths.runDir,
    capabilities: platform.capabilities,
    controlPlane: of.control.describe(),
    caps: capsOf(config, facts),
  };
  const ports: AdminPorts = {
    agent: {
      facts: () => agentFacts,
      report: () => engine.report(),
      record: (uid) => engine.record(uid),
      pathsOf: paths.pathsOf,
      desired: desired.current,
      issues: desired.issues,
      inContact: desired.inContact,
      plan: (lives) => engine.plan(lives),
      trouble: (uid) => engine.trouble(uid),
      held: () => engine.held(),
      eventsSince: (seq) => events.since(seq),
      onEvent: (listener) => events.listen(listener),
    },
    editor: of.control,
    imagination: {
      imagine: async (files, signal) => {
        const read = await of.control.read(files, signal);
        return read.kind === 'refused' ? read : { kind: 'lives', lives: desired.imagine(read.specs) };
      },
    },
    holds: desired,
    consoles,
    network: guestNetwork,
  };
  const server = new AdminServer(ports, clock, log, { runDir: paths.runDir, os: facts.os });
  await server.start();
  return server;
}
