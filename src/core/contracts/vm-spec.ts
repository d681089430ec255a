declare const vmIdBrand: unique symbol;
declare const vmUidBrand: unique symbol;

/** A VM's name: `[a-z0-9][a-z0-9-]{0,62}`. Only a name: it may be used again for another life. */
export type VmId = string & { readonly [vmIdBrand]: true };

/** One life of a VM: a lower-case UUID, immutable, never used twice. Records, folders, taps and MACs belong to it. */
export type VmUid = string & { readonly [vmUidBrand]: true };

/** What the declaration wants of the guest. */
export type PowerState = 'running' | 'stopped';
/** What follows when a guest that should run ended by itself: an exit whose code nobody learned counts as a failure. */
export type RestartPolicy = 'always' | 'on-failure' | 'never';
/** Formats of images; `qcow2` is turned into `raw` before use. */
export type ImageFormat = 'raw' | 'qcow2';

/** Names an image's bytes. */
export interface ImageDigest {
  readonly algorithm: 'sha256' | 'sha512';
  /** Lower-case hex. */
  readonly hex: string;
}

/** A name in the image catalog, or a place to fetch from. */
export type ImageRef =
  | { readonly kind: 'catalog'; readonly name: string }
  | {
      readonly kind: 'url';
      /** `https:`, `http:` or `file:`. */
      readonly url: string;
      readonly digest?: ImageDigest;
      /** Absent: probed from the file's own header. */
      readonly format?: ImageFormat;
    };

/** A volume of a VM. */
export interface VolumeSpec {
  /** Names a volume of this host: it outlives the VM, and one VM at a time may use it. Same grammar as a VM id. */
  readonly name: string;
  /** [1, 2^20]; may grow, and never shrinks. */
  readonly sizeGib: number;
}

/** A second NIC. */
export interface NetworkAttachment {
  /** A named network that the host's operator declared. */
  readonly name: string;
}

/** What a published port speaks. */
export type PortProtocol = 'tcp' | 'udp';

/** A port of the host that leads to a port of the guest. */
export interface Exposure {
  /** Address of the host to listen on; `0.0.0.0` for all of IPv4. */
  readonly hostAddress: string;
  readonly hostPort: number;
  readonly guestPort: number;
  readonly protocol: PortProtocol;
}

/** Hardware that not every backend has; each is refused where the backend's capabilities lack it. */
export interface HardwareSpec {
  readonly hugepages?: '2MiB' | '1GiB';
  readonly sharedMemory?: boolean;
  /** vCPU → host processors. */
  readonly cpuAffinity?: Readonly<Record<string, readonly number[]>>;
  readonly tpm?: boolean;
  readonly vsock?: boolean;
  readonly smbiosSerial?: string;
}

/** Rates a second. */
export interface LimitSpec {
  readonly diskIops?: number;
  readonly diskBandwidthBytes?: number;
  readonly netBandwidthBits?: number;
}

/**
 * What somebody wants a VM to be: the parsed form of a manifest, in the units of the wire.
 *
 * Every optional field of a manifest has its default filled in here, but for those whose default is only known later
 * (`diskGib`: the image's size). Nothing here is trusted to name a path: ids are parsed before they get this type.
 */
export interface VmSpec {
  readonly id: VmId;
  readonly labels: Readonly<Record<string, string>>;
  readonly power: PowerState;
  readonly cpus: number;
  readonly memoryMib: number;
  /** Size of the root disk in GiB; absent: the image's size rounded up to whole GiB. */
  readonly diskGib?: number;
  readonly image: ImageRef;
  /** In attachment order: the first is /dev/vdc, for ever. */
  readonly volumes: readonly VolumeSpec[];
  readonly networks: readonly NetworkAttachment[];
  readonly exposures: readonly Exposure[];
  readonly sshKeys: readonly string[];
  readonly hostname: string;
  /** cloud-init user-data, whole, `#cloud-config` or a script. */
  readonly userData?: string;
  readonly hardware: HardwareSpec;
  readonly limits: LimitSpec;
  readonly restart: RestartPolicy;
  readonly shutdown: {
    /** How long the guest may take to power off before it is terminated. */
    readonly graceSeconds: number;
  };
}
