/**
 * Turns what the agent knows into what the operator API tells. Pure.
 */
import type {
  DesiredLife,
  DesiredState,
  EditOutcome,
  ExitState,
  Failure,
  ManifestEditor,
  VmId,
  VmSpec,
  VmStatus,
} from '@eitri/core/contracts';
import {
  issueView,
  vmSummary,
  type ActView,
  type ReleasedView,
  type RepairedView,
  type StatusView,
  type VmView,
  type WrittenView,
} from '@eitri/protocol';
import { AdminError } from './admin-error.js';
import type { AgentView, Consoles } from './ports.js';

const iso = (atMs: number): string => new Date(atMs).toISOString();

export function statusView(agent: AgentView): StatusView {
  const { host, capabilities, caps, controlPlane, startedAt, ...facts } = agent.facts();
  const desired = agent.desired();
  const byPhase: Record<string, number> = {};
  const { vms } = agent.report();
  for (const { phase } of vms) byPhase[phase] = (byPhase[phase] ?? 0) + 1;
  return {
    ...facts,
    startedAt: iso(startedAt),
    host: { ...host },
    backend: {
      name: capabilities.backend,
      vmmVersion: capabilities.vmmVersion,
      guestNetwork: capabilities.guestNetwork,
      notes: capabilities.notes.map(({ text }) => text),
    },
    controlPlane: {
      description: controlPlane,
      inContact: agent.inContact(),
      ...(desired === undefined ? {} : { lineage: desired.lineage, epoch: desired.epoch, revision: desired.revision }),
    },
    issues: agent.issues().map(issueView),
    vms: { total: vms.length, byPhase },
    capacity: { held: { ...agent.held() }, caps: { ...caps } },
  };
}

export function vmView(agent: AgentView, consoles: Pick<Consoles, 'state'>, status: VmStatus): VmView {
  const { uid } = status;
  const record = agent.record(uid);
  const life = agent.desired()?.lives.find((one: DesiredLife) => one.uid === uid);
  const paths = agent.pathsOf(uid);
  const image = record?.prepared.image;
  return {
    ...vmSummary(status),
    ...(life === undefined ? {} : { desiredSpec: withoutSecrets(life.spec) }),
    console: consoles.state(uid),
    paths: {
      folder: paths.folder,
      rootDisk: paths.rootDisk,
      seed: paths.seed,
      serialLog: paths.serialLog,
      vmmLog: paths.vmmLog,
      runFolder: paths.runFolder,
      volumes: [...(record?.volumePaths ?? [])],
    },
    attempts: record?.attempts ?? 0,
    crashes: record?.crashes ?? 0,
    upMs: Math.round(record?.upMs ?? 0),
    shelvedMs: Math.round(record?.shelved?.ms ?? 0),
    ...(record === undefined
      ? {}
      : {
          createdAt: iso(record.createdAt),
          spec: withoutSecrets(record.spec),
          namedMac: record.namedMac,
          prepared: {
            ...(image === undefined ? {} : { image: `${image.algorithm}:${image.hex}` }),
            disk: record.prepared.disk,
            volumes: [...record.prepared.volumes],
            seed: record.prepared.seed,
          },
        }),
    ...(record?.intent === undefined ? {} : { step: record.intent.step }),
    ...(record?.failure === undefined ? {} : { failure: failureView(record.failure) }),
    ...(record?.lastExit === undefined ? {} : { lastExit: lastExitView(record.lastExit) }),
  };
}

/** User-data may hold passwords: it is for the guest alone, and not for whoever may look. */
function withoutSecrets(spec: VmSpec): VmSpec {
  const { userData: _secret, ...shown } = spec;
  return shown;
}

export function failureView(of: Failure): NonNullable<VmView['failure']> {
  const { code, message, permanent, at } = of;
  return { code, message, permanent, at: iso(at) };
}

export const lastExitView = (of: ExitState): NonNullable<VmView['lastExit']> => ({ ...of, at: iso(of.at) });

export type Act = 'start' | 'stop' | 'delete' | 'undelete';

/** The answer to an act; a refusal is thrown, with everything that is to be mended in its sentence. */
export function actView(act: Act, id: string, uid: string | undefined, result: EditOutcome): ActView {
  if (result.kind === 'refused') throw refusal(result);
  const files = result.edits.map((edit) => edit.file);
  const named = files.length === 0 ? '' : ` (${files.join(', ')})`;
  const message = (result.changed ? CHANGED : UNCHANGED)[act](id, named);
  return { ...(uid === undefined ? {} : { uid }), id, changed: result.changed, message, files };
}

type Sentence = (id: string, named: string) => string;

const CHANGED: Readonly<Record<Act, Sentence>> = {
  start: (id, named) => `${id} is declared running now${named}`,
  stop: (id, named) => `${id} is declared stopped now${named}`,
  delete: (id, named) => `${id} is deleted: its document lies in .deleted/ now${named}`,
  undelete: (id, named) => `${id} is declared again: its document is back from .deleted/${named}`,
};

const UNCHANGED: Readonly<Record<Act, Sentence>> = {
  start: (id, named) => `${id} was declared running already${named}`,
  stop: (id, named) => `${id} was declared stopped already${named}`,
  delete: (id, named) => `${id} was deleted already: its document lies in .deleted/${named}`,
  undelete: (id, named) => `${id} is not deleted: its document stands in the folder${named}`,
};

export type WriteMode = Parameters<ManifestEditor['write']>[1];

/** The answer to documents that were handed in; a refusal is thrown. */
export function writtenView(result: EditOutcome, desired: DesiredState | undefined): WrittenView {
  if (result.kind === 'refused') throw refusal(result);
  const vms = result.edits.map(({ id, file }) => {
    const life = desired?.lives.find((one) => one.kind === 'present' && one.id === id);
    return { id: String(id), file, ...(life === undefined ? {} : { uid: life.uid, power: life.spec.power }) };
  });
  const named = vms.map(({ id, file }) => `${id} (${file})`).join(', ');
  const verb = vms.length === 1 ? 'is' : 'are';
  const message = result.changed
    ? `${named} ${verb} declared now`
    : `${named} ${verb} declared so already: nothing was changed`;
  return { changed: result.changed, message, vms };
}

export function releasedView(ids: readonly VmId[]): ReleasedView {
  const message =
    ids.length === 0
      ? 'no VM is held'
      : `${ids.join(', ')}: no longer held; what is still missing is destroyed when --vanish-grace has passed`;
  return { released: [...ids], message };
}

export const repairedView = (mended: readonly string[]): RepairedView => ({
  mended: [...mended],
  message: mended.length === 0 ? "the guests' network is as it should be" : mended.join('\n'),
});

const REFUSALS = {
  notFound: 'notFound',
  invalid: 'invalid',
  conflict: 'conflict',
  notEditable: 'invalid',
} as const;

const refusal = (result: Extract<EditOutcome, { kind: 'refused' }>): AdminError =>
  new AdminError(REFUSALS[result.reason], result.why.join('; '));
