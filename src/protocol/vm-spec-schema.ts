/**
 * A `VmSpec` as it travels and as it lies in the agent's own files: checked for its form, in the units of the wire.
 *
 * What may be asked for is the manifest's matter. Here unknown fields survive, so that an older agent that rewrites a
 * newer one's file loses nothing.
 */
import type { HardwareSpec, ImageDigest, LimitSpec, VmId, VmSpec, VmUid } from '@eitri/core/contracts';
import { isVmId, isVmUid } from '@eitri/core/kit';
import { z } from 'zod';

/**
 * An object of type T, unknown fields kept. The compiler asks for every field of T: a new optional one too is checked.
 */
export const objectOf =
  <T>() =>
  <S extends Readonly<Record<keyof T, z.ZodType>>>(shape: S) =>
    z.looseObject(shape);

/** A uid: a lower-case UUID. */
export const vmUidSchema = z.custom<VmUid>(
  (value) => typeof value === 'string' && isVmUid(value),
  'must be a lower-case UUID',
);
/** A VM's id, in the grammar of `isVmId`. */
export const vmIdSchema = z.custom<VmId>(
  (value) => typeof value === 'string' && isVmId(value),
  'must be the name of a VM',
);

/** An algorithm, and lower-case hex of any length. */
export const imageDigestSchema = objectOf<ImageDigest>()({
  algorithm: z.enum(['sha256', 'sha512']),
  hex: z.string().regex(/^[0-9a-f]+$/),
}) satisfies z.ZodType<ImageDigest>;

const imageRef = z.discriminatedUnion('kind', [
  z.looseObject({ kind: z.literal('catalog'), name: z.string().min(1) }),
  z.looseObject({
    kind: z.literal('url'),
    url: z.string().min(1),
    digest: imageDigestSchema.exactOptional(),
    format: z.enum(['raw', 'qcow2']).exactOptional(),
  }),
]);

const limits = objectOf<LimitSpec>()({
  diskIops: z.number().exactOptional(),
  diskBandwidthBytes: z.number().exactOptional(),
  netBandwidthBits: z.number().exactOptional(),
}) satisfies z.ZodType<LimitSpec>;

const port = z.int().min(1).max(65_535);

/** Ranges that the manifest's parser owns are not judged again. */
export const vmSpecSchema: z.ZodType<VmSpec> = objectOf<VmSpec>()({
  id: vmIdSchema,
  labels: z.record(z.string(), z.string()),
  power: z.enum(['running', 'stopped']),
  cpus: z.int().min(1),
  memoryMib: z.int().min(1),
  diskGib: z.int().min(1).exactOptional(),
  image: imageRef,
  volumes: z.array(
    z.looseObject({ name: z.string().refine(isVmId, 'must be a volume name'), sizeGib: z.int().min(1) }),
  ),
  networks: z.array(z.looseObject({ name: z.string().min(1) })),
  exposures: z.array(
    z.looseObject({
      hostAddress: z.string().min(1),
      hostPort: port,
      guestPort: port,
      protocol: z.enum(['tcp', 'udp']),
    }),
  ),
  sshKeys: z.array(z.string()),
  hostname: z.string().min(1),
  userData: z.string().exactOptional(),
  hardware: objectOf<HardwareSpec>()({
    hugepages: z.enum(['2MiB', '1GiB']).exactOptional(),
    sharedMemory: z.boolean().exactOptional(),
    cpuAffinity: z.record(z.string(), z.array(z.int().min(0))).exactOptional(),
    tpm: z.boolean().exactOptional(),
    vsock: z.boolean().exactOptional(),
    smbiosSerial: z.string().exactOptional(),
  }),
  limits,
  restart: z.enum(['always', 'on-failure', 'never']),
  shutdown: z.looseObject({ graceSeconds: z.number().min(0) }),
});
