/**
 * A `VmSpec` as it travels and as it lies in the agent's own files: checked for its form, in the units of the wire.
 *
 * What may be asked for is the manifest's matter. Here unknown fields survive, so that an older agent that rewrites a
 * newer one's file loses nothing.
 */
import type { VmId, VmSpec, VmUid } from '@eitri/core/contracts';
import { isVmId, isVmUid } from '@eitri/core/kit';
import { z } from 'zod';

export const vmIdSchema = z.custom<VmId>((value) => typeof value === 'string' && isVmId(value), 'not a VM name');
export const vmUidSchema = z.custom<VmUid>((value) => typeof value === 'string' && isVmUid(value), 'not a uid');

const count = z.number().int().nonnegative();
const text = z.string();

const imageSchema = z.discriminatedUnion('kind', [
  z.looseObject({ kind: z.literal('catalog'), name: text }),
  z.looseObject({
    kind: z.literal('url'),
    url: text,
    digest: z.looseObject({ algorithm: z.enum(['sha256', 'sha512']), hex: text }).exactOptional(),
    format: z.enum(['raw', 'qcow2']).exactOptional(),
  }),
]);

export const vmSpecSchema: z.ZodType<VmSpec> = z.looseObject({
  id: vmIdSchema,
  labels: z.record(text, text),
  power: z.enum(['running', 'stopped']),
  cpus: count,
  memoryMib: count,
  diskGib: count.exactOptional(),
  image: imageSchema,
  volumes: z.array(z.looseObject({ name: text, sizeGib: count })),
  networks: z.array(z.looseObject({ name: text })),
  exposures: z.array(
    z.looseObject({ hostAddress: text, hostPort: count, guestPort: count, protocol: z.enum(['tcp', 'udp']) }),
  ),
  sshKeys: z.array(text),
  hostname: text,
  userData: text.exactOptional(),
  hardware: z.looseObject({
    hugepages: z.enum(['2MiB', '1GiB']).exactOptional(),
    sharedMemory: z.boolean().exactOptional(),
    cpuAffinity: z.record(text, z.array(count)).exactOptional(),
    tpm: z.boolean().exactOptional(),
    vsock: z.boolean().exactOptional(),
    smbiosSerial: text.exactOptional(),
  }),
  limits: z.looseObject({
    diskIops: count.exactOptional(),
    diskBandwidthBytes: count.exactOptional(),
    netBandwidthBits: count.exactOptional(),
  }),
  restart: z.enum(['always', 'on-failure', 'never']),
  shutdown: z.looseObject({ graceSeconds: count }),
});
