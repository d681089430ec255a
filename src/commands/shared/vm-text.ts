/**
 * VMs, the agent and its checks as text for people. Pure.
 */
import { formatBytes, MIB } from '@eitri/core/kit';
import type { StatusView, VmSummaryView, VmView } from '@eitri/protocol';
import { issuesText } from './issue-text.js';
import { fields, table, type Column, type Field } from './table.js';

const memory = (mib: number): string => formatBytes(mib * MIB);

const portText = ({ exposure, state }: VmSummaryView['ports'][number]): string => {
  const host = exposure.hostAddress === '0.0.0.0' ? '' : `${exposure.hostAddress}:`;
  const protocol = exposure.protocol === 'udp' ? '/udp' : '';
  const mark = state === 'published' ? '' : ` ${state}`;
  return `${host}${exposure.hostPort}->${exposure.guestPort}${protocol}${mark}`;
};

/** What a person should know beside the state: what is wrong first, then where it can be reached. */
function note(vm: VmSummaryView): string {
  const wrong = [vm.reason, vm.message].filter((part) => part !== undefined).join(': ');
  return wrong === '' ? vm.ports.map(portText).join(', ') : wrong;
}

/** The state, and where it is on its way to when that is not where it is. */
function state(vm: VmSummaryView): string {
  if (vm.wanted === 'stopped' && vm.phase === 'Running') return 'Running, to stop';
  if (vm.wanted === 'deleted' && vm.phase !== 'Destroying') return `${vm.phase}, deleted`;
  return vm.phase;
}

const LIST: readonly Column<VmSummaryView>[] = [
  { title: 'NAME', of: (vm) => vm.id, shrinkTo: 16 },
  { title: 'STATE', of: state },
  { title: 'CPUS', of: (vm) => (vm.cpus === undefined ? '-' : String(vm.cpus)), right: true },
  { title: 'MEMORY', of: (vm) => (vm.memoryMib === undefined ? '-' : memory(vm.memoryMib)), right: true },
  { title: 'DISK', of: (vm) => (vm.diskGib === undefined ? '-' : `${vm.diskGib} GiB`), right: true },
  { title: 'ADDRESS', of: (vm) => vm.address ?? '-' },
  { title: 'NOTE', of: note, shrinkTo: 12 },
];

export const vmListText = (vms: readonly VmSummaryView[], width: number | undefined): string =>
  vms.length === 0 ? 'no VMs\n' : table(vms, LIST, width);

export function vmText(vm: VmView, columns: number): string {
  const spec = vm.spec ?? vm.desiredSpec;
  const image = spec === undefined ? undefined : spec.image.kind === 'catalog' ? spec.image.name : spec.image.url;
  const rows: readonly Field[] = [
    ['name', vm.id],
    ['uid', vm.uid],
    ['state', vm.phase],
    ['wanted', vm.wanted],
    ['reason', vm.reason],
    ['message', vm.message, 'sentence'],
    ['failure', failureText(vm.failure), 'sentence'],
    ['last exit', exitText(vm.lastExit), 'sentence'],
    ['step', vm.step],
    ['attempts', vm.attempts === 0 ? undefined : String(vm.attempts)],
    ['crashes', vm.crashes === 0 ? undefined : String(vm.crashes)],
    ['backend', vm.backend],
    ['pid', vm.pid?.toString()],
    ['cpus', vm.cpus?.toString()],
    ['memory', vm.memoryMib === undefined ? undefined : memory(vm.memoryMib)],
    ['disk', vm.diskGib === undefined ? undefined : `${vm.diskGib} GiB`],
    ['image', image],
    ['image digest', vm.prepared?.image],
    ['address', vm.address],
    ['network address', vm.networkAddress],
    ['mac', vm.mac],
    ['ports', vm.ports.map((port) => `${portText(port)}${port.why === undefined ? '' : ` (${port.why})`}`).join(', ')],
    [
      'labels',
      Object.entries(vm.labels)
        .map(([key, value]) => `${key}=${value}`)
        .join(', '),
    ],
    ['console', vm.console],
    ['boots', String(vm.boots)],
    ['created', vm.createdAt],
    ['started', vm.startedAt],
    ['host key', vm.hostKeys.join(', ')],
    ['root disk', vm.paths?.rootDisk],
    ['volumes', vm.paths?.volumes.join(', ')],
    ['serial log', vm.paths?.serialLog],
    ['VMM log', vm.paths?.vmmLog],
  ];
  return fields(rows, columns);
}

const failureText = (failure: VmView['failure']): string | undefined =>
  failure === undefined ? undefined : `${failure.code}: ${failure.message} (${failure.at})`;

const CAUSES = { self: 'by itself', stop: 'as it was told to', hostReboot: 'with its host' } as const;

function exitText(exit: VmView['lastExit']): string | undefined {
  if (exit === undefined) return undefined;
  const how = [
    CAUSES[exit.cause],
    exit.code === undefined ? undefined : `code ${exit.code}`,
    exit.signal,
    exit.reason,
  ].filter((part) => part !== undefined);
  return `${how.join(', ')} (${exit.at})`;
}

export function statusText(status: StatusView, columns: number): string {
  const { host, backend, controlPlane, vms, capacity } = status;
  const phases = Object.entries(vms.byPhase).map(([phase, count]) => `${count} ${phase}`);
  const revision =
    controlPlane.revision === undefined
      ? undefined
      : `${controlPlane.revision} (epoch ${controlPlane.epoch ?? 0}, lineage ${controlPlane.lineage ?? ''})`;
  const rows: readonly Field[] = [
    ['agent', `${status.version}, pid ${status.pid}, since ${status.startedAt}`],
    ['host', `${host.hostname}, ${host.os}/${host.arch}, ${host.cpus} CPUs, ${memory(host.memoryMib)}`],
    ['state', status.stateDir],
    ['sockets', status.runDir],
    ['backend', `${backend.name}, ${backend.vmmVersion}, guest network: ${backend.guestNetwork}`],
    ...backend.notes.map((note): Field => ['note', note, 'sentence']),
    ['control plane', `${controlPlane.description}${controlPlane.inContact ? '' : ', not in contact'}`],
    ['revision', revision],
    ['VMs', vms.total === 0 ? 'none' : `${vms.total}: ${phases.join(', ')}`],
    ['held', heldText(capacity)],
  ];
  const issues = issuesText(status.issues, columns);
  return `${fields(rows, columns)}${issues === '' ? '' : `\n${issues}`}`;
}

function heldText({ held, caps }: StatusView['capacity']): string {
  const of = (amount: string, cap: string | undefined): string => (cap === undefined ? amount : `${amount} of ${cap}`);
  return [
    of(`${held.vcpus} vCPUs`, caps.vcpus === 0 ? undefined : String(caps.vcpus)),
    of(memory(held.memoryMib), caps.memoryMib === 0 ? undefined : memory(caps.memoryMib)),
    of(`${held.diskGib} GiB disk`, caps.diskGib === 0 ? undefined : `${caps.diskGib} GiB`),
  ].join(', ');
}
