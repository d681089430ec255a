import type { ControlPlaneHost } from './control-plane-host.js';

/**
 * Whoever says which VMs should exist: a folder of manifests, or a server. One code path stands behind both.
 *
 * Call order: `run` once, until its signal is aborted; `describe` at any time, also before. A control plane never
 * reaches into the engine: it hands desired state to the desired store, and what else it needs is in its host.
 */
export interface ControlPlane {
  /**
   * For status, at once from memory: `local folder /etc/eitri`, `server eitri.example.org`. One answer for its life.
   */
  readonly describe: () => string;
  /**
   * Works until the signal is aborted, then resolves: contact is withdrawn and nothing of it runs on. Not called twice.
   * Rejects, permanent, only for what the operator must mend before the agent can run at all (a folder without its
   * marker); all later trouble is an issue of the desired store, or a log line.
   */
  readonly run: (host: ControlPlaneHost, signal: AbortSignal) => Promise<void>;
}
