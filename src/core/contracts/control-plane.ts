/**
 * Whoever says which VMs should exist: a folder of manifests, or a server. One code path stands behind both.
 *
 * Call order: `run` once, until its signal is aborted. A control plane never reaches into the engine: it hands desired
 * state to the desired store and takes reports.
 */
import type { ActualState } from './report.js';

export interface ControlPlane {
  /** For status: `local folder /etc/eitri`, `server eitri.example.org`. */
  readonly describe: () => string;
  /**
   * Works until the signal is aborted, then resolves. Rejects only for what the operator must mend before the agent can
   * run at all (a folder without its marker); all later trouble is an issue of the desired store, or a log line.
   */
  readonly run: (host: ControlPlaneHost, signal: AbortSignal) => Promise<void>;
}

/** What a control plane is given of the agent. */
export interface ControlPlaneHost {
  readonly report: () => ActualState;
  /** Calls back (debounced) after the report changed. Returns the unsubscription. */
  readonly onReport: (listener: () => void) => () => void;
}
