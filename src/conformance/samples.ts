/**
 * Plain values to start a test from: specs, uids, VMs, capabilities.
 */
import type { Capabilities, VmId, VmInstance, VmPaths, VmSpec, VmUid } from '@eitri/core/contracts';
import { namedMac, natMac } from '@eitri/core/kit';

/** The n-th uid: `00000000-0000-4000-8000-000000000007`. */
export const sampleUid = (n: number): VmUid => `00000000-0000-4000-8000-${n.toString().padStart(12, '0')}` as VmUid;

/** A small VM, as a manifest with little in it means it. */
export function sampleSpec(id: string, changes: Partial<VmSpec> = {}): VmSpec {
  return {
    id: id as VmId,
    labels: {},
    power: 'running',
    cpus: 1,
    memoryMib: 256,
    image: { kind: 'catalog', name: 'tiny' },
    volumes: [],
    networks: [],
    exposures: [],
    sshKeys: [],
    hostname: id,
    hardware: {},
    limits: {},
    restart: 'always',
    shutdown: { graceSeconds: 90 },
    ...changes,
  };
}

/** A VM as a backend is told of it. */
export function sampleVm(uid: VmUid, spec: VmSpec, paths: VmPaths, volumePaths: readonly string[] = []): VmInstance {
  return { uid, spec, paths, mac: natMac(uid), namedMac: namedMac(uid), volumePaths };
}

/** What a backend with taps and nothing special can do; a fresh value at each call. */
export const sampleCapabilities = (changes: Partial<Capabilities> = {}): Capabilities => ({
  backend: 'fake',
  vmmVersion: 'fake-vmm 1.0',
  guestNetwork: 'tap',
  addressReachable: true,
  publishesPorts: false,
  namedNetworks: true,
  powerButton: true,
  consoleBacklog: false,
  hardware: {
    hugepages: false,
    sharedMemory: false,
    cpuAffinity: false,
    tpm: false,
    vsock: false,
    smbiosSerial: false,
  },
  limits: { disk: false, net: false },
  notes: [],
  ...changes,
});
