/**
 * Eight real guests on their host's network, made, stopped, started and deleted by a hand that edits the folder, while the
 * agent gets SIGKILL at a hundred random moments. `EITRI_CAMPAIGN_SEED` plays another one; moments depend on the machine.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { isTempName } from '../../../src/host/atomic-file.js';
import { BridgeHost } from '../../support/bridge-host.js';
import { tinyManifest } from '../../support/guests.js';
import { Prng } from '../../support/history/prng.js';
import { processesNaming } from '../../support/processes.js';
import { until } from '../../support/until.js';

const SEED = Number(process.env['EITRI_CAMPAIGN_SEED'] ?? '1');
const KILLS = 100;
const NAMES = Array.from({ length: 8 }, (_, at) => `vm-${String(at)}`);
/** An agent is up in one to two seconds: many of these fall into its start, its adoption, its first passes. */
const LIVES_MS = [200, 600, 900, 1_200, 1_600, 2_500, 4_000, 8_000];
const PATIENT = { timeoutMs: 900_000, everyMs: 1_000 };

let host: BridgeHost;
afterAll(() => host.remove());

type Wanted = 'running' | 'stopped' | 'deleted';

it(`a hundred kills of the agent (seed ${String(SEED)}): what is wanted comes true, one VMM a disk, nothing left behind`, async () => {
  host = await BridgeHost.make();
  const { operator } = host;
  await operator.init();
  const random = new Prng(SEED);
  const wanted = new Map<string, Wanted>();
  const inodes = new Map<string, number>();
  const edit = async (): Promise<void> => {
    const name = random.pick(NAMES);
    const now = wanted.get(name) ?? 'deleted';
    const next = random.pick<Wanted>(
      now === 'deleted' ? ['running', 'running', 'stopped'] : ['running', 'stopped', 'deleted'],
    );
    if (next === 'deleted') bury(operator.manifests, `${name}.yaml`);
    else operator.put(`${name}.yaml`, await tinyManifest({ name, power: next }));
    wanted.set(name, next);
  };

  for (let kill = 0; kill < KILLS; kill++) {
    await edit();
    operator.launch();
    if (random.chance(0.5)) await edit();
    await passed(random.pick(LIVES_MS) * (0.5 + random.next()));
    await operator.kill();
    checkDisks(operator.state, inodes);
  }

  await operator.start();
  await until(async () => {
    const seen = new Map((await operator.vms()).map(({ id, phase }) => [id, phase]));
    for (const name of NAMES) {
      const want = wanted.get(name) ?? 'deleted';
      const phase = seen.get(name);
      const right =
        want === 'running' ? phase === 'Running' : want === 'stopped' ? phase === 'Stopped' : phase === undefined;
      // One that is declared stopped and was never made has no phase but this.
      if (!right) throw new Error(`${name} is ${String(phase)}, and shall be ${want}`);
    }
    return true;
  }, PATIENT);
  checkDisks(operator.state, inodes);
  const running = NAMES.filter((name) => wanted.get(name) === 'running');
  expect(vmms(operator.state).length).toBe(running.length);
  expect(filesOf(operator.state).filter((path) => isTempName(path.split('/').at(-1) ?? ''))).toEqual([]);

  for (const name of NAMES) if ((wanted.get(name) ?? 'deleted') !== 'deleted') bury(operator.manifests, `${name}.yaml`);
  await until(async () => (await operator.vms()).length === 0, PATIENT);
  expect(vmms(operator.state)).toEqual([]);
  expect(readdirSync(join(operator.state, 'vms'))).toEqual([]);
  expect(await host.taps()).toEqual([]);
  expect(host.leases()).toEqual([]);
  expect(readdirSync(operator.run).sort()).toEqual(['act.sock', 'admin.sock', 'dhcp', 'lock', 'rules']);
}, 3_600_000);

/** Moves a document to where the deleted ones lie, as `vm delete` does. */
function bury(folder: string, file: string): void {
  mkdirSync(join(folder, '.deleted'), { recursive: true });
  if (existsSync(join(folder, file))) renameSync(join(folder, file), join(folder, '.deleted', file));
}

/** The one level here is time itself. */
async function passed(ms: number): Promise<void> {
  const end = performance.now() + ms;
  await until(() => performance.now() >= end, { timeoutMs: ms + 60_000, what: 'time passes' });
}

/** Each VMM by its disk. */
function vmms(state: string): readonly string[] {
  return processesNaming('qemu-system', join(state, 'vms')).map(
    ({ argv }) => /vms\/([0-9a-f-]{36})\/guest\/disk\.raw/.exec(argv.join(' '))?.[1] ?? argv.join(' '),
  );
}

/** No two VMMs on one disk, and no disk of a life that was booted made anew. */
function checkDisks(state: string, inodes: Map<string, number>): void {
  const running = vmms(state);
  expect(running.length, 'VMMs on different disks').toBe(new Set(running).size);
  const folder = join(state, 'vms');
  for (const uid of existsSync(folder) ? readdirSync(folder) : []) {
    const disk = join(folder, uid, 'guest', 'disk.raw');
    const record = readJson(join(folder, uid, 'record.json'));
    const before = inodes.get(uid);
    if (!existsSync(disk)) {
      // Its record goes last: what is left without one is a folder that is being removed.
      const going = record === undefined || record['destroying'] === true;
      expect(before === undefined || going, `the disk of ${uid} is there`).toBe(true);
      continue;
    }
    const { ino } = statSync(disk);
    if (before !== undefined) expect(ino, `the file of the disk of ${uid}`).toBe(before);
    if (record?.['bootAttempted'] === true) inodes.set(uid, ino);
  }
}

/** A record that is there is whole, whenever the agent was killed. */
function readJson(path: string): Readonly<Record<string, unknown>> | undefined {
  if (!existsSync(path)) return undefined;
  return JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
}

function filesOf(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}
