/** Operating systems that an agent runs on. */
export type HostOs = 'linux' | 'darwin';
/** Processor architectures in Node's vocabulary. */
export type HostArch = 'x64' | 'arm64';

/**
 * What this machine is, read once at start and injected: nobody below the composition root reads the real platform,
 * so that an agent for another one can be composed and tested here.
 */
export interface HostFacts {
  readonly os: HostOs;
  readonly arch: HostArch;
  /** Identifies this boot of the host: a pid or a running guest of another boot id is gone. */
  readonly bootId: string;
  /** Host name, `unknown` where it could not be read. */
  readonly hostname: string;
  /** Whether the agent runs as root. */
  readonly root: boolean;
  readonly cpus: number;
  readonly memoryMib: number;
}
