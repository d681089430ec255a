/**
 * What a backend can do, asked once at the agent's start. The comment of a flag tells what the agent does differently
 * with it; a spec that asks for what is unset is refused, with the flag's name, and never passed on in hope.
 */
export interface Capabilities {
  /** The backend's name: `cloudhv`, `vfkit`, `qemu`, or a third party's. */
  readonly backend: string;
  /** The hypervisor's own version line, as it prints it. */
  readonly vmmVersion: string;
  /** `tap`: guests sit on a `Network`'s bridge. `user`: the VMM has a network of its own and needs no root. */
  readonly guestNetwork: 'tap' | 'user';
  /** Set: the host reaches a guest at its address. Unset: only through published ports. */
  readonly addressReachable: boolean;
  /** Set: the agent hands exposures to the plugin's `PortPublisher` instead of publishing them itself. */
  readonly publishesPorts: boolean;
  /** Set: a spec may ask for a named network beside the first NIC. */
  readonly namedNetworks: boolean;
  /** Set: guests are powered off by an ACPI button first; unset: shutdown starts at its next step. */
  readonly powerButton: boolean;
  /** Set: console output that nobody has read yet is kept by the VMM (cloud-hypervisor ≥ 53) and comes first. */
  readonly consoleBacklog: boolean;
  /** Hardware options that a spec may carry. */
  readonly hardware: {
    readonly hugepages: boolean;
    readonly sharedMemory: boolean;
    readonly cpuAffinity: boolean;
    readonly tpm: boolean;
    readonly vsock: boolean;
    readonly smbiosSerial: boolean;
  };
  /** Rate limits that a spec may carry. */
  readonly limits: { readonly disk: boolean; readonly net: boolean };
  /**
   * Sentences for the operator: what works differently here, e.g. that a user-mode guest can't be reached by address.
   * `warn`: what most would rather change, such as guests that are emulated.
   */
  readonly notes: readonly CapabilityNote[];
}

/** One thing that an operator should know of a backend on this host. */
export interface CapabilityNote {
  readonly level: 'info' | 'warn';
  readonly text: string;
}
