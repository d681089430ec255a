/** The `eitri` block of a plugin's package.json: read, and judged, before any code of the plugin runs. */
export interface BackendManifest {
  /** The contract number that it was built for. */
  readonly contract: number;
  readonly kind: 'provisioner' | 'network';
  /** What `--backend` and the records call it. */
  readonly name: string;
  /** `linux`, `darwin`; others are kept for hosts that this agent does not know yet. */
  readonly os: readonly string[];
  /** What the agent can't install for it, each with a sentence to the operator where it is missing. */
  readonly needs: {
    /** Node's words: `x64`, `arm64`. Absent: any. */
    readonly arch?: readonly string[];
    /** Set: a usable /dev/kvm. */
    readonly kvm?: boolean;
    /** Set: a network plugin beside it. */
    readonly network?: boolean;
  };
  /** The module to load, relative to the package. */
  readonly entry: string;
}
