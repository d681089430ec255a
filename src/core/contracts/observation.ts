/**
 * Who paused a guest. `fullDisk`: its VMM, because a write found no room below a disk; the engine has it resumed now and
 * then. `fault`: its VMM, because it can't run the guest any further (an accelerator that broke). `other`: the guest itself, or somebody at the VMM's own controls; it is left as it is.
 */
export type PausedBy = 'fullDisk' | 'fault' | 'other';

/**
 * What a backend sees of a VM's hypervisor now.
 *
 * `unknown` says that it could not be found out (a match that may not be signalled, a /proc that can't be read): then
 * nothing is booted and nothing destroyed. A VMM whose process lives but whose API does not answer is `starting`, not
 * `absent`: to boot a second one would fight for the first one's disk.
 */
export type Observation =
  | { readonly state: 'absent' }
  | { readonly state: 'starting'; readonly pid: number }
  | { readonly state: 'running'; readonly pid: number }
  /** Its guest stands still, and the VMM lives. */
  | { readonly state: 'paused'; readonly pid: number; readonly by: PausedBy }
  | { readonly state: 'stopping'; readonly pid: number }
  /** The VMM ended and was not replaced. `code` is absent when nobody was there to learn it. */
  | { readonly state: 'exited'; readonly code?: number; readonly signal?: string }
  | { readonly state: 'unknown'; readonly why: string };

/** An observation in one word, for tables and messages. */
export type ObservedState = Observation['state'];
