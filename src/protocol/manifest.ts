/**
 * A manifest: what a person, or a control plane's operator, writes to say what a VM shall be. `parseManifest` turns any
 * value into a `VmSpec` with its defaults filled in, or says of each field what is wrong and what to write.
 *
 * Pure: files are read, and YAML is parsed, by whoever calls. `userDataFile` is known only where the caller can read
 * it.
 */
import type { VmId, VmSpec } from '@eitri/core/contracts';
import { isVmId } from '@eitri/core/kit';
import { z } from 'zod';
import { fieldIssues, leaf, refuse, shape, show, type FieldIssue } from './issues.js';
import * as field from './manifest-fields.js';

/** What `apiVersion` has to be. */
export const MANIFEST_API_VERSION = 'eitri/v1';
/** What `kind` has to be. */
export const MANIFEST_KIND = 'VirtualMachine';
/** `spec.shutdown.graceSeconds` where a manifest has none. */
export const DEFAULT_GRACE_SECONDS = 90;
/** `spec.memory` where a manifest has none. */
export const DEFAULT_MEMORY_MIB = 1024;
/** A day: a guest that needs longer to power off will not. */
const MAX_GRACE_SECONDS = 86_400;

/** Where a manifest came from, as far as that decides what it may say. */
export interface ManifestOptions {
  /** Whether `userDataFile` may stand for `userData`: where the manifest is a file beside it. */
  readonly userDataFile: boolean;
}

/** A VM, or what is wrong with each field, in the order of their paths. */
export type ParsedManifest =
  | {
      readonly ok: true;
      readonly spec: VmSpec;
      /** The file that the caller has yet to read into `spec.userData`. */
      readonly userDataFile?: string;
    }
  | { readonly ok: false; readonly issues: readonly FieldIssue[] };

const apiVersion = leaf(MANIFEST_API_VERSION, (value) =>
  value === MANIFEST_API_VERSION ? value : refuse(`${show(value)} is not known here: write ${MANIFEST_API_VERSION}`),
);
const kind = leaf(MANIFEST_KIND, (value) =>
  value === MANIFEST_KIND ? value : refuse(`${show(value)} is not known here: write ${MANIFEST_KIND}`),
);
const noUserDataFile = leaf<string>('userData', () =>
  refuse('works only in a folder of manifests: put the text itself under userData'),
);

const specShape = (options: ManifestOptions) =>
  shape({
    power: field.oneOf('running', 'stopped').optional(),
    cpus: field.integer(1, field.MAX_CPUS).optional(),
    memory: field.memoryMib.optional(),
    disk: field.diskGib.optional(),
    image: field.image,
    volumes: field.volumes.optional(),
    networks: field.networks.optional(),
    exposures: field.exposures.optional(),
    sshKeys: field.sshKeys.optional(),
    hostname: field.hostname.optional(),
    userData: field.userData.optional(),
    userDataFile: (options.userDataFile ? field.userDataFile : noUserDataFile).optional(),
    hardware: field.hardware.optional(),
    limits: field.limits.optional(),
    restart: field.oneOf('always', 'on-failure', 'never').optional(),
    shutdown: shape({ graceSeconds: field.integer(1, MAX_GRACE_SECONDS).optional() }).optional(),
  }).superRefine((spec, ctx) => {
    if (spec.userData !== undefined && spec.userDataFile !== undefined) {
      ctx.addIssue({ code: 'custom', path: ['userDataFile'], message: 'stands beside userData: keep one of them' });
    }
    const cpus = spec.cpus ?? 1;
    for (const vcpu of Object.keys(spec.hardware?.cpuAffinity ?? {})) {
      if (!(Number(vcpu) >= cpus)) continue;
      const message = `there is no vCPU ${vcpu}: cpus is ${cpus.toString()}, and they count from 0`;
      ctx.addIssue({ code: 'custom', path: ['hardware', 'cpuAffinity', vcpu], message });
    }
  });

const manifestShape = (options: ManifestOptions) =>
  shape({
    apiVersion,
    kind,
    metadata: shape({ name: field.vmName, labels: field.labels.optional() }),
    spec: specShape(options),
  });

/** The two schemas: built once, a folder is parsed again at each change. */
const onTheWire = manifestShape({ userDataFile: false });
const inAFolder = manifestShape({ userDataFile: true });

/**
 * Turns a value (of YAML or JSON) into a `VmSpec` with its defaults filled in. Never throws: what is wrong is an
 * answer.
 */
export function parseManifest(value: unknown, options: ManifestOptions = { userDataFile: false }): ParsedManifest {
  const parsed = (options.userDataFile ? inAFolder : onTheWire).safeParse(value);
  return parsed.success ? filled(parsed.data) : { ok: false, issues: fieldIssues(parsed.error) };
}

/** The VM that a refused manifest is about, where that much can be told. */
export function manifestName(value: unknown): VmId | undefined {
  const named = z.looseObject({ metadata: z.looseObject({ name: z.string() }) }).safeParse(value);
  return named.success && isVmId(named.data.metadata.name) ? named.data.metadata.name : undefined;
}

function filled({ metadata, spec }: z.infer<typeof inAFolder>): ParsedManifest {
  const vm: VmSpec = {
    id: metadata.name,
    labels: metadata.labels ?? {},
    power: spec.power ?? 'running',
    cpus: spec.cpus ?? 1,
    memoryMib: spec.memory ?? DEFAULT_MEMORY_MIB,
    ...(spec.disk !== undefined && { diskGib: spec.disk }),
    image: spec.image,
    volumes: spec.volumes ?? [],
    networks: spec.networks ?? [],
    exposures: spec.exposures ?? [],
    sshKeys: spec.sshKeys ?? [],
    // A name may end with a hyphen, a host name may not.
    hostname: spec.hostname ?? metadata.name.replace(/-+$/, ''),
    ...(spec.userData !== undefined && { userData: spec.userData }),
    hardware: spec.hardware ?? {},
    limits: spec.limits ?? {},
    restart: spec.restart ?? 'always',
    shutdown: { graceSeconds: spec.shutdown?.graceSeconds ?? DEFAULT_GRACE_SECONDS },
  };
  return spec.userDataFile === undefined
    ? { ok: true, spec: vm }
    : { ok: true, spec: vm, userDataFile: spec.userDataFile };
}
