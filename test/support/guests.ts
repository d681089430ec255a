/**
 * Manifests of tiny guests, and what a tiny guest says (scripts/guest/README.md).
 */
import { tinyGuest } from './guest.js';

export interface TinyVm {
  readonly name: string;
  readonly power?: 'running' | 'stopped';
  readonly image?: string;
  readonly ports?: readonly (readonly [host: number, guest: number])[];
  readonly volume?: string;
  readonly sshKey?: string;
}

export async function tinyManifest(vm: TinyVm): Promise<string> {
  const image = vm.image ?? (await tinyGuest());
  const ports = (vm.ports ?? []).map(
    ([host, guest]) =>
      `{hostAddress: 127.0.0.1, hostPort: ${String(host)}, guestPort: ${String(guest)}, protocol: tcp}`,
  );
  return `# ${vm.name}: edited by hand
apiVersion: eitri/v1
kind: VirtualMachine
metadata: {name: ${vm.name}}
spec:
  power: ${vm.power ?? 'running'}
  cpus: 1
  memory: 256MiB
  disk: 1GiB
  image: {url: "file://${image}"}
  volumes: [${vm.volume === undefined ? '' : `{name: ${vm.volume}, size: 2GiB}`}]
  exposures: [${ports.join(', ')}]
  sshKeys: [${vm.sshKey === undefined ? '' : JSON.stringify(vm.sshKey)}]
`;
}

/** How often the guest printed its banner: once a boot. */
export const banners = (text: string): number => text.split('tiny: banner ').length - 1;

/** The boots that the guest counted on its own disk, in order. */
export const bootCounts = (text: string): readonly number[] =>
  [...text.matchAll(/tiny: boot-count=(\d+)/g)].map(([, count]) => Number(count));

export const prompt = (name: string): RegExp => new RegExp(`${name} login: `);
