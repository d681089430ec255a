/**
 * Says, before anything is touched, what of a spec this backend can't give. Pure; each refusal names the field.
 */
import type { Capabilities, VmSpec } from '@eitri/core/contracts';
import { MAX_CPUS, MAX_VOLUMES } from './arguments.js';

/** cloud-init's NoCloud reads the SMBIOS serial, and takes one that starts like this for configuration. */
const NOCLOUD_SERIAL = /^ds=nocloud/i;
const SMBIOS_SERIAL = /^[\x20-\x7e]{1,64}$/;

/** Why the spec can't be booted here; empty when it can. */
export function refusalsOf(spec: VmSpec, capabilities: Capabilities): readonly string[] {
  const refusals: string[] = [];
  const lacks = (field: string, flag: string): void => {
    refusals.push(`${field} is not available with the ${capabilities.backend} backend here (capability ${flag})`);
  };
  const { hardware, limits } = spec;
  if (hardware.hugepages !== undefined && !capabilities.hardware.hugepages)
    lacks('hardware.hugepages', 'hardware.hugepages');
  if (hardware.sharedMemory === true && !capabilities.hardware.sharedMemory) {
    lacks('hardware.sharedMemory', 'hardware.sharedMemory');
  }
  if (hardware.cpuAffinity !== undefined && !capabilities.hardware.cpuAffinity) {
    lacks('hardware.cpuAffinity', 'hardware.cpuAffinity');
  }
  if (hardware.tpm === true && !capabilities.hardware.tpm) lacks('hardware.tpm', 'hardware.tpm');
  if (hardware.vsock === true && !capabilities.hardware.vsock) lacks('hardware.vsock', 'hardware.vsock');
  if (hardware.smbiosSerial !== undefined) {
    if (!capabilities.hardware.smbiosSerial) lacks('hardware.smbiosSerial', 'hardware.smbiosSerial');
    else if (!SMBIOS_SERIAL.test(hardware.smbiosSerial)) {
      refusals.push('hardware.smbiosSerial must be 1 to 64 printable ASCII characters');
    } else if (NOCLOUD_SERIAL.test(hardware.smbiosSerial)) {
      refusals.push('hardware.smbiosSerial must not start with ds=nocloud: cloud-init would take it for configuration');
    }
  }
  if ((limits.diskIops ?? limits.diskBandwidthBytes) !== undefined && !capabilities.limits.disk) {
    lacks('limits.diskIops, limits.diskBandwidth', 'limits.disk');
  }
  if (limits.netBandwidthBits !== undefined && !capabilities.limits.net) lacks('limits.netBandwidth', 'limits.net');
  if (spec.networks.length > 0 && !capabilities.namedNetworks) lacks('networks', 'namedNetworks');
  if (spec.networks.length > 1) refusals.push(`networks has ${spec.networks.length} entries, at most one is possible`);
  if (spec.cpus > MAX_CPUS) refusals.push(`cpus ${spec.cpus} is more than this machine type's ${MAX_CPUS}`);
  if (spec.volumes.length > MAX_VOLUMES) {
    refusals.push(
      `volumes has ${spec.volumes.length} entries, at most ${MAX_VOLUMES} (/dev/vdc to /dev/vdz) are possible`,
    );
  }
  return refusals;
}
