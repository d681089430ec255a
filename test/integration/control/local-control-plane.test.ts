import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '@eitri/conformance';
import type { VmId } from '@eitri/core/contracts';
import { errorLine, isPermanent } from '@eitri/core/kit';
import { checkFolder } from '../../../src/control/local/index.js';
import { FolderReader } from '../../../src/control/local/folder-reading.js';
import { placesOf } from '../../../src/control/local/folder-word.js';
import { issueLines, manifest, ManifestFolder, wanted, type Running } from '../../support/manifest-folder.js';
import { until } from '../../support/until.js';

async function started(...names: readonly string[]): Promise<ManifestFolder & { readonly agent: Running }> {
  const world = new ManifestFolder();
  await world.init();
  for (const name of names) world.put(`${name}.yaml`, manifest(name));
  const agent = await world.run();
  const all = names.map((name) => `${name} present`).join(', ');
  await until(() => agent.store.inContact() && wanted(agent.store) === all);
  return Object.assign(world, { agent });
}

const reaches = (agent: Running, state: string) =>
  until(() => wanted(agent.store) === state, { what: `${state}; is ${wanted(agent.store)}` });
const says = (agent: Running, words: RegExp) =>
  until(() => issueLines(agent.store).some((line) => words.test(line)), { what: String(words) });

describe('a folder', () => {
  it('made by init has a marker, and a second init changes nothing and shows it', async () => {
    const world = new ManifestFolder();
    const made = await world.init();
    const text = world.text('.eitri-lineage');
    expect(await world.init()).toEqual({ kind: 'exists', marker: made.marker });
    expect(world.text('.eitri-lineage')).toBe(text);
    expect(world.names()).toEqual(['.eitri-lineage']);
  });

  it('without its marker ends the start with what to type', async () => {
    const world = new ManifestFolder();
    world.put('web.yaml', manifest('web'));
    const agent = await world.run();
    const error: unknown = await agent.ended.catch((e: unknown) => e);
    expect(errorLine(error)).toContain(`type: eitri-agent local init ${world.folder}`);
    expect(isPermanent(error)).toBe(true);
    expect(agent.store.current()).toBeUndefined();
  });

  it('with a torn marker ends the start, and init does not replace it', async () => {
    const world = new ManifestFolder();
    world.put('.eitri-lineage', '');
    await expect((await world.run()).ended).rejects.toThrow(/it holds no lineage and epoch\): put back a copy of it/);
    await expect(world.init()).rejects.toThrow(/put back a copy of it, or remove it by hand/);
  });

  it('of another lineage ends the start and names --adopt; with it, the lives stay the same', async () => {
    const world = await started('web');
    const uid = world.agent.store.current()?.lives[0]?.uid;
    await world.agent.stop();
    rmSync(join(world.folder, '.eitri-lineage'));
    await world.init();
    await expect((await world.run()).ended).rejects.toThrow(/--adopt/);
    const agent = await world.run({ adopt: true });
    await until(() => agent.store.inContact());
    expect(agent.store.current()?.lives.map((life) => life.uid)).toEqual([uid]);
  });

  it('that changes is read again: a new file, an edit in place, an atomic save, JSON, a file that goes', async () => {
    const world = await started('web');
    const { agent } = world;
    world.put('db.yml', manifest('db'));
    await reaches(agent, 'db present, web present');
    const cpus = () =>
      agent.store
        .current()
        ?.lives.map((life) => life.spec.cpus)
        .toSorted()
        .join();
    world.put('db.yml', manifest('db', 'image: tiny\n  cpus: 2'));
    await until(() => cpus() === '1,2');
    writeFileSync(join(world.folder, '.web.swp'), manifest('web', 'image: tiny\n  cpus: 3'));
    renameSync(join(world.folder, '.web.swp'), join(world.folder, 'web.yaml'));
    await until(() => cpus() === '2,3');
    const json = { apiVersion: 'eitri/v1', kind: 'VirtualMachine', metadata: { name: 'j' }, spec: { image: 'x' } };
    world.put('j.json', JSON.stringify(json));
    await reaches(agent, 'db present, j present, web present');
    rmSync(join(world.folder, 'db.yml'));
    await reaches(agent, 'db vanished, j present, web present');
    expect(issueLines(agent.store)).toEqual([]);
  });

  it('whose file is renamed, or whose documents change files, loses no life', async () => {
    const world = await started('a', 'b', 'c');
    const { agent } = world;
    const uids = agent.store.current()?.lives.map((life) => life.uid);
    const kinds = new Set<string>();
    agent.store.onChange(() => agent.store.current()?.lives.forEach((life) => kinds.add(life.kind)));
    renameSync(join(world.folder, 'a.yaml'), join(world.folder, 'z.yaml'));
    world.put('z.yaml', manifest('a', 'image: tiny\n  cpus: 2'));
    await until(() => agent.store.current()?.lives.some((life) => life.spec.cpus === 2));
    expect(agent.store.current()?.lives.map((life) => life.uid)).toEqual(uids);
    expect([...kinds]).toEqual(['present']);
  });

  it('whose file is renamed to and fro while it is looked at has it in every look', async () => {
    const world = new ManifestFolder();
    await world.init();
    world.put('a.yaml', manifest('web'));
    const looked = new AbortController();
    let renames = 0;
    const renaming = (async () => {
      for (; !looked.signal.aborted; renames++) {
        const [from, to] = renames % 2 === 0 ? ['a.yaml', 'z.yaml'] : ['z.yaml', 'a.yaml'];
        await rename(join(world.folder, from), join(world.folder, to));
      }
    })();
    const reader = new FolderReader(world.folder);
    const seen = new Set<number>();
    for (let look = 0; look < 300; look++) {
      const reading = await reader.read(new AbortController().signal);
      if (reading.kind === 'read') seen.add(placesOf(reading.files).size);
    }
    looked.abort();
    await renaming;
    expect([[...seen], renames > 100]).toEqual([[1], true]);
  });
});

describe('what can’t be read is no absence', () => {
  it.each([
    ['is half written', 'apiVersion: eitri/v1\nmetadata: {name: we'],
    ['is empty', ''],
    ['is torn', '\0\0\0\0'],
    ['lost the name', manifest('web').replace('name: web', 'nmae: web')],
    ['is refused by its schema', manifest('web', 'image: tiny\n  cpus: 0')],
    ['is of another kind', manifest('web').replace('VirtualMachine', 'Pod')],
  ])('a file that %s keeps its VM, also over a restart, and is told by its line', async (_what, text) => {
    const world = await started('db', 'web');
    world.put('web.yaml', text);
    await says(world.agent, /^web\.yaml(:\d+)?: /);
    expect(wanted(world.agent.store)).toBe('db present, web present');
    await world.agent.stop();
    const again = await world.run();
    await until(() => again.store.inContact());
    await says(again, /^web\.yaml(:\d+)?: /);
    expect(wanted(again.store)).toBe('db present, web present');
    world.put('web.yaml', manifest('web'));
    await until(() => again.store.issues().length === 0);
    expect(wanted(again.store)).toBe('db present, web present');
  });

  it('one bad file harms no other: new VMs come, edits count, tombstones count', async () => {
    const world = await started('a', 'b');
    world.put('bad.yaml', 'spec: [');
    world.put('c.yaml', manifest('c'));
    await reaches(world.agent, 'a present, b present, c present');
    expect(await world.agent.plane.remove('a' as never, new AbortController().signal)).toMatchObject({ kind: 'done' });
    expect(wanted(world.agent.store)).toBe('a tombstoned, b present, c present');
    // It may be declared in what can't be read.
    rmSync(join(world.folder, 'b.yaml'));
    world.put('d.yaml', manifest('d'));
    await reaches(world.agent, 'a tombstoned, b present, c present, d present');
    rmSync(join(world.folder, 'bad.yaml'));
    await reaches(world.agent, 'a tombstoned, b vanished, c present, d present');
  });

  it('a link to nothing, a pipe, a folder and bytes that are no text are told and hang nobody', async () => {
    const world = await started('web');
    symlinkSync('/nowhere/x', join(world.folder, 'link.yaml'));
    execFileSync('mkfifo', [join(world.folder, 'pipe.yaml')]);
    mkdirSync(join(world.folder, 'folder.yaml'));
    writeFileSync(join(world.folder, 'latin.yaml'), Buffer.from([0x61, 0xe4, 0xff]));
    for (const words of [
      /^link\.yaml: is a link to nothing/,
      /^pipe\.yaml: .*not a regular file/,
      /^folder\.yaml: .*it is a folder/,
      /^latin\.yaml: is not UTF-8/,
    ]) {
      await says(world.agent, words);
    }
    rmSync(join(world.folder, 'web.yaml'));
    world.put('new.yaml', manifest('new'));
    await reaches(world.agent, 'new present, web present');
  });

  it('a link in a circle is told once, and nobody looks the faster for it', async () => {
    const world = await started('web');
    symlinkSync('loop.yaml', join(world.folder, 'loop.yaml'));
    await says(world.agent, /^loop\.yaml: is a link that leads in a circle/);
    // Each of these is a look, and a watcher that is armed again at each would fail at each.
    for (let i = 0; i < 5; i++) {
      world.put(`n${i}.yaml`, manifest(`n${i}`));
      await until(() => wanted(world.agent.store).includes(`n${i} present`));
    }
    expect(issueLines(world.agent.store)).toHaveLength(1);
    expect(world.log.events('warn').filter((event) => event === 'manifests.watch.failed').length).toBeLessThan(2);
  });

  it('a link out of the folder is refused, and nothing of what it leads to is told', async () => {
    const world = await started('web');
    const outside = join(dirname(world.folder), 'shadow');
    writeFileSync(outside, 'root: secret\n');
    symlinkSync(outside, join(world.folder, 'shadow.yaml'));
    await says(world.agent, /^shadow\.yaml: is a link that leads out of the folder/);
    expect(issueLines(world.agent.store).join()).not.toMatch(/root|secret/);
  });

  it('a file of more than 1 MiB is not read, and told with the bound', async () => {
    const world = await started('web');
    world.put('big.yaml', '#'.repeat(2 ** 20 + 1));
    await says(world.agent, /^big\.yaml: has 1048577 bytes, and at most 1 MiB is read/);
  });

  it('a marker that is lost is told with what it must say again, and no new one is suggested', async () => {
    const world = await started('web');
    const { lineage, epoch } = world.agent.store.current() ?? {};
    rmSync(join(world.folder, '.eitri-lineage'));
    await says(world.agent, /put its marker back/);
    const [line = ''] = issueLines(world.agent.store);
    expect(line).not.toContain('local init');
    const [, first = '', second = '', path = ''] = /lines "(.*)" and "(.*)" into (.*)$/.exec(line) ?? [];
    expect([first, second]).toEqual([`lineage: ${lineage}`, `epoch: ${epoch}`]);
    writeFileSync(path, `${first}\n${second}\n`);
    await until(() => world.agent.store.inContact());
  });

  it('a fence, and a disk that takes nothing, are told once', async () => {
    const world = await started('web');
    const own = world.text('.eitri-lineage');
    world.put('.eitri-lineage', 'lineage: 11111111-1111-4111-8111-111111111111\nepoch: 1\n');
    world.put('web.yaml', manifest('web', 'image: tiny\n  cpus: 2'));
    await says(world.agent, /--adopt/);
    expect(issueLines(world.agent.store)).toHaveLength(1);
    world.put('.eitri-lineage', own);
    rmSync(world.desiredPath);
    mkdirSync(join(world.desiredPath, 'x'), { recursive: true });
    world.put('web.yaml', manifest('web', 'image: tiny\n  cpus: 3'));
    await says(world.agent, /can’t be written/);
    expect(issueLines(world.agent.store).filter((line) => line.includes('desired.json'))).toHaveLength(1);
  });

  it('a marker that goes, and a folder that goes, are silence; back again, everything counts', async () => {
    const world = await started('a', 'b', 'c');
    const { agent } = world;
    rmSync(join(world.folder, 'a.yaml'));
    renameSync(join(world.folder, '.eitri-lineage'), join(world.folder, '.away'));
    await says(agent, /has no \.eitri-lineage, so it says nothing about any VM/);
    expect([agent.store.inContact(), wanted(agent.store).includes('b present, c present')]).toEqual([false, true]);
    renameSync(join(world.folder, '.away'), join(world.folder, '.eitri-lineage'));
    await until(() => agent.store.inContact());
    await reaches(agent, 'a vanished, b present, c present');

    const aside = `${world.folder}.aside`;
    renameSync(world.folder, aside);
    expect(await agent.plane.setPower('b' as never, 'running', new AbortController().signal)).toMatchObject({
      kind: 'refused',
      why: [expect.stringContaining('the folder is not there')],
    });
    expect(agent.store.inContact()).toBe(false);
    await says(agent, /the folder is not there/);
    expect(wanted(agent.store)).toBe('a vanished, b present, c present');
    renameSync(aside, world.folder);
  });

  it('a host that starts before its folder is mounted keeps what it had, and says so', async () => {
    const world = await started('a', 'b');
    await world.agent.stop();
    const aside = `${world.folder}.aside`;
    renameSync(world.folder, aside);
    mkdirSync(world.folder);
    const clock = new ManualClock();
    const agent = await world.run({ clock, lookMs: 15_000 });
    await says(agent, /mount what belongs here/);
    expect([wanted(agent.store), agent.store.inContact()]).toEqual(['a present, b present', false]);
    rmSync(world.folder, { recursive: true });
    renameSync(aside, world.folder);
    await until(async () => {
      await clock.advance(15_000);
      return agent.store.inContact();
    });
    expect([wanted(agent.store), agent.store.issues()]).toEqual(['a present, b present', []]);
    expect(world.log.events('warn').filter((event) => event === 'manifests.out-of-contact')).toHaveLength(1);
  });

  it('a folder that is emptied at once is held, loudly', async () => {
    const world = await started('a', 'b', 'c', 'd');
    for (const name of ['a', 'b', 'c', 'd']) rmSync(join(world.folder, `${name}.yaml`));
    await says(world.agent, /a, b, c, d went missing at once, so all are kept/);
    expect(world.log.events('error')).toContain('desired.mass-vanish.held');
  });
});

describe('a name declared twice', () => {
  it('is told at both; the one that counted so far counts on, and its edits too', async () => {
    const world = await started('web');
    const { agent } = world;
    world.put('a-copy.yaml', manifest('web', 'image: tiny\n  cpus: 8'));
    await says(agent, /^a-copy\.yaml:2: "web" is declared in web\.yaml:2 too: keep one/);
    await says(agent, /^web\.yaml:2: "web" is declared in a-copy\.yaml:2 too: keep one/);
    const cpus = () => agent.store.current()?.lives[0]?.spec.cpus;
    expect(cpus()).toBe(1);
    world.put('web.yaml', manifest('web', 'image: tiny\n  cpus: 2'));
    await until(() => cpus() === 2);
    // After a restart the one that says what was accepted is the owner.
    await agent.stop();
    const again = await world.run();
    await until(() => again.store.inContact());
    world.put('web.yaml', manifest('web', 'image: tiny\n  cpus: 4'));
    await until(() => again.store.current()?.lives[0]?.spec.cpus === 4);
    rmSync(join(world.folder, 'web.yaml'));
    await until(() => again.store.current()?.lives[0]?.spec.cpus === 8);
    expect(wanted(again.store)).toBe('web present');
  });

  it('before any counted is nobody', async () => {
    const world = await started('other');
    world.put('two.yaml', `${manifest('web')}---\n${manifest('web', 'image: tiny\n  cpus: 8')}`);
    await says(world.agent, /^two\.yaml:\d+: "web" is declared in two\.yaml:\d+ too/);
    expect(wanted(world.agent.store)).toBe('other present');
  });
});

describe('the periodic look', () => {
  it('finds what no watcher saw', async () => {
    const world = new ManifestFolder();
    await world.init();
    const outside = join(dirname(world.folder), 'cloud.cfg');
    writeFileSync(outside, '#cloud-config\n');
    world.put('web.yaml', manifest('web', `image: tiny\n  userDataFile: ${outside}`));
    const clock = new ManualClock();
    const agent = await world.run({ clock, lookMs: 15_000 });
    await reaches(agent, 'web present');
    writeFileSync(outside, '#cloud-config\nhostname: x\n');
    await until(async () => {
      await clock.advance(15_000);
      return agent.store.current()?.lives[0]?.spec.userData === '#cloud-config\nhostname: x\n';
    });
  });

  it('writes nothing where nothing changed', async () => {
    const world = new ManifestFolder();
    await world.init();
    world.put('web.yaml', manifest('web'));
    const clock = new ManualClock();
    const agent = await world.run({ clock, lookMs: 15_000 });
    await reaches(agent, 'web present');
    const revision = agent.store.current()?.revision;
    const bytes = readFileSync(world.desiredPath, 'utf8');
    for (let look = 0; look < 5; look++) await clock.advance(15_000);
    expect([agent.store.current()?.revision, readFileSync(world.desiredPath, 'utf8')]).toEqual([revision, bytes]);
  });
});

describe('files that a manifest names', () => {
  it('beside it are read in; outside, through a link, missing or empty they are refused by their line', async () => {
    const world = await started('web');
    const { agent } = world;
    const use = (file: string): void => world.put('web.yaml', manifest('web', `image: tiny\n  userDataFile: ${file}`));
    world.put('cloud.cfg', '#cloud-config\n');
    use('cloud.cfg');
    await until(() => agent.store.current()?.lives[0]?.spec.userData === '#cloud-config\n');
    writeFileSync(join(dirname(world.folder), 'outside.cfg'), 'secret');
    use('../outside.cfg');
    await says(agent, /^web\.yaml:8: .*leads out of the folder of manifests/);
    symlinkSync('../outside.cfg', join(world.folder, 'inside.cfg'));
    use('inside.cfg');
    await says(agent, /^web\.yaml:8: inside\.cfg: leads out/);
    use('none.cfg');
    await says(agent, /^web\.yaml:8: none\.cfg: is not there: put it beside the manifest/);
    world.put('empty.cfg', '');
    use('empty.cfg');
    await says(agent, /^web\.yaml:8: empty\.cfg: is empty/);
    expect(agent.store.current()?.lives[0]?.spec.userData).toBe('#cloud-config\n');
  });

  it('anywhere on the host count only where the manifest’s owner could read them himself', async () => {
    const world = await started('web');
    const { agent } = world;
    world.put('web.yaml', manifest('web', 'image: {url: "file:///etc/shadow"}'));
    chmodSync(join(world.folder, 'web.yaml'), 0o666);
    await says(agent, /^web\.yaml:2: a file of this host may be named only in a manifest that belongs to root/);
    expect(agent.store.current()?.lives[0]?.spec.image.kind).toBe('catalog');
    chmodSync(join(world.folder, 'web.yaml'), 0o644);
    await until(() => agent.store.current()?.lives[0]?.spec.image.kind === 'url');
  });
});

describe('the operator’s edits', () => {
  const go = new AbortController().signal;
  const web = 'web' as never;

  it('of power keep every other byte, mode and owner, and count before they resolve', async () => {
    const world = await started('web');
    const { agent } = world;
    const text = manifest('web', 'image: tiny # small\n  power: running   # until the move');
    world.put('web.yaml', text);
    chmodSync(join(world.folder, 'web.yaml'), 0o640);
    expect(await agent.plane.setPower(web, 'stopped', go)).toEqual({
      kind: 'done',
      changed: true,
      edits: [{ id: 'web', file: 'web.yaml' }],
    });
    expect(agent.store.current()?.lives[0]?.spec.power).toBe('stopped');
    expect(world.text('web.yaml')).toBe(text.replace('running', 'stopped'));
    expect(await agent.plane.setPower(web, 'stopped', go)).toMatchObject({ kind: 'done', changed: false });
    expect(world.names()).toEqual(['.eitri-lineage', 'web.yaml']);
  });

  it('move a document to .deleted and back: its tombstone, taken back, the same life', async () => {
    const world = await started('db', 'web');
    const { agent } = world;
    const uid = agent.store.current()?.lives.find((life) => life.id === web)?.uid;
    expect(await agent.plane.remove(web, go)).toMatchObject({ edits: [{ file: '.deleted/web.yaml' }] });
    expect([wanted(agent.store), world.names('.deleted')]).toEqual(['db present, web tombstoned', ['web.yaml']]);
    expect(await agent.plane.remove(web, go)).toMatchObject({ kind: 'done', changed: false });
    expect(await agent.plane.setPower(web, 'stopped', go)).toMatchObject({ kind: 'refused', reason: 'notFound' });
    expect(await agent.plane.undelete(web, go)).toMatchObject({ edits: [{ file: 'web.yaml' }] });
    expect([wanted(agent.store), world.names('.deleted')]).toEqual(['db present, web present', []]);
    expect(agent.store.current()?.lives.find((life) => life.id === web)?.uid).toBe(uid);
    expect(await agent.plane.undelete(web, go)).toMatchObject({ kind: 'done', changed: false });
    expect(world.text('web.yaml')).toBe(manifest('web'));
  });

  it('cut a document out of several and leave the others as they are', async () => {
    const world = await started('other');
    const { agent } = world;
    world.put('all.yaml', `${manifest('a')}---\n${manifest('web')}---\n${manifest('c')}`);
    await reaches(agent, 'a present, c present, other present, web present');
    expect(await agent.plane.remove(web, go)).toMatchObject({ kind: 'done', changed: true });
    expect(world.text('all.yaml')).toBe(`${manifest('a')}---\n${manifest('c')}`);
    expect(world.text('.deleted/web.yaml')).toBe(`---\n${manifest('web')}`);
    expect(wanted(agent.store)).toBe('a present, c present, other present, web tombstoned');
    expect(await agent.plane.undelete(web, go)).toMatchObject({ edits: [{ file: 'web.yaml' }] });
    expect(wanted(agent.store)).toBe('a present, c present, other present, web present');
  });

  it('write a document where none is, replace it where it stands, and take its old tombstone away', async () => {
    const world = await started('db');
    const { agent } = world;
    const create = (text: string) => agent.plane.write(text, 'create', go);
    const apply = (text: string) => agent.plane.write(text, 'apply', go);
    expect(await create(manifest('web'))).toMatchObject({ kind: 'done', edits: [{ id: 'web', file: 'web.yaml' }] });
    expect(await create(manifest('web'))).toMatchObject({ kind: 'refused', reason: 'conflict' });
    expect(await apply(manifest('web'))).toMatchObject({ kind: 'done', changed: false });
    await agent.plane.remove(web, go);
    expect(await create(manifest('web', 'image: tiny\n  cpus: 2'))).toMatchObject({ kind: 'done' });
    expect([world.names('.deleted'), wanted(agent.store)]).toEqual([[], 'db present, web present']);
    world.put('two.yaml', `${manifest('x')}---\n${manifest('y')}`);
    const both = `${manifest('y', 'image: tiny\n  cpus: 3')}---\n${manifest('z')}`;
    expect(await apply(both)).toMatchObject({ edits: [{ file: 'two.yaml' }, { id: 'z', file: 'z.yaml' }] });
    expect(world.text('two.yaml')).toBe(`${manifest('x')}---\n${manifest('y', 'image: tiny\n  cpus: 3')}`);
    expect(agent.store.issues()).toEqual([]);
  });

  it('that are wrong in one document write none, and say every line', async () => {
    const world = await started('db');
    const text = `${manifest('web')}---\n${manifest('x', 'cpus: 0')}`;
    expect(await world.agent.plane.write(text, 'apply', go)).toEqual({
      kind: 'refused',
      reason: 'invalid',
      why: [
        'input:15: spec.cpus: 0 is not in 1..256',
        'input:14: spec.image: is missing: write a name of the image catalog, or a map with url',
      ],
    });
    expect(await world.agent.plane.write('spec: [', 'apply', go)).toMatchObject({ reason: 'invalid' });
    expect(world.names()).toEqual(['.eitri-lineage', 'db.yaml']);
  });

  it('that are not safe are refused with what to do by hand', async () => {
    const world = await started('web');
    const { agent } = world;
    const power = () => agent.plane.setPower(web, 'stopped', go);
    world.put('web.yaml', manifest('web', 'image: &i tiny\n  hostname: web\n  power: &p running\n  labels: x'));
    expect(await power()).toMatchObject({
      reason: 'notEditable',
      why: ['web.yaml:10: spec.labels: unknown field: remove it: mend it first'],
    });
    chmodSync(join(world.folder, 'web.yaml'), 0o444);
    world.put('web.yaml', manifest('web'));
    expect(await power()).toMatchObject({
      reason: 'notEditable',
      why: ['web.yaml is read-only: chmod u+w it, or change it by hand'],
    });
    chmodSync(join(world.folder, 'web.yaml'), 0o644);
    renameSync(join(world.folder, 'web.yaml'), join(world.folder, '.real'));
    symlinkSync('.real', join(world.folder, 'web.yaml'));
    expect(await power()).toMatchObject({
      reason: 'notEditable',
      why: ['web.yaml is a symbolic link: change by hand what it leads to'],
    });
    expect(await agent.plane.remove(web, go)).toMatchObject({ reason: 'notEditable' });
    world.put('copy.yaml', manifest('web'));
    expect(await power()).toMatchObject({
      reason: 'conflict',
      why: ['web stands in copy.yaml:2, web.yaml:2: keep one, by hand'],
    });
    rmSync(join(world.folder, 'web.yaml'));
    world.put('copy.yaml', 'spec: [');
    expect(await power()).toMatchObject({
      reason: 'notEditable',
      why: ['no document of web can be found while copy.yaml can’t be read: mend it first'],
    });
  });

  it('of a file that belongs to somebody else leave it his, so that it is trusted no more than before', async () => {
    const world = await started('web');
    const path = join(world.folder, 'web.yaml');
    // Without root nobody can give a file away: then there is nothing to keep but one's own.
    const owner = process.getuid?.() === 0 ? 65534 : (process.getuid?.() ?? 0);
    chownSync(path, owner, process.getgid?.() ?? 0);
    expect(await world.agent.plane.setPower(web, 'stopped', go)).toMatchObject({ kind: 'done', changed: true });
    expect(statSync(path).uid).toBe(owner);
  });

  it('beside a stale tombstone are told: it would delete the VM when its file goes', async () => {
    const world = await started('web');
    mkdirSync(join(world.folder, '.deleted'));
    writeFileSync(join(world.folder, '.deleted', 'web.yaml'), manifest('web'));
    await says(world.agent, /^\.deleted\/web\.yaml:2: web is declared in web\.yaml too, so it is not deleted/);
    expect(wanted(world.agent.store)).toBe('web present');
  });
});

describe('the operator is told', () => {
  const lines = (agent: Running) => agent.events.map(({ level, message }) => `${level} ${message}`);
  const tells = (agent: Running, words: RegExp) => until(() => lines(agent).some((line) => words.test(line)));

  it('of a document that breaks and is mended, once each, with its line', async () => {
    const world = await started('web');
    world.put('web.yaml', manifest('web', 'image: tiny\n  cpuz: 2'));
    await tells(world.agent, /^warn web\.yaml:8: spec\.cpuz: /);
    world.put('other.yaml', manifest('other'));
    await reaches(world.agent, 'other present, web present');
    world.put('web.yaml', manifest('web'));
    await tells(world.agent, /^info no longer: web\.yaml:8: spec\.cpuz: /);
    expect(lines(world.agent)).toHaveLength(2);
    expect(world.agent.events[0]?.id).toBe('web');
  });

  it('of contact that is lost and found again', async () => {
    const world = await started('web');
    const marker = world.text('.eitri-lineage');
    rmSync(join(world.folder, '.eitri-lineage'));
    await tells(world.agent, /it has no \.eitri-lineage/);
    world.put('.eitri-lineage', marker);
    await tells(world.agent, /^info contact with local folder .* again$/);
    expect(world.agent.events.map(({ type }) => type)).toEqual([
      'control.contact.lost',
      'desired.issue',
      'desired.issue.gone',
      'control.contact.found',
    ]);
  });

  it('of a lineage that is refused, and of a mass vanishing that is held', async () => {
    const world = await started('a', 'b', 'c', 'd');
    for (const name of ['a', 'b', 'c']) rmSync(join(world.folder, `${name}.yaml`));
    await tells(world.agent, /^warn mass vanishing: a, b, c went missing .*eitri-agent vm release-holds$/);
    world.put('.eitri-lineage', 'lineage: 0b5c2a1e-0000-4000-8000-00000000000a\nepoch: 1\n');
    await tells(world.agent, /^warn control plane: this host’s VMs belong to lineage/);
  });

  it('of a thousand troubles in a bounded number of lines', async () => {
    const world = await started('web');
    for (let i = 0; i < 1000; i++) world.put(`x${i}.yaml`, 'a: [');
    await until(() => world.agent.store.issues().length >= 1000);
    await tells(world.agent, /more: see "eitri-agent status"$/);
    expect(world.agent.events.length).toBeLessThan(200);
  });
});

describe('an agent that is about to start', () => {
  const start = async (world: ManifestFolder, adopt = false) =>
    await checkFolder(world.folder, await world.store(adopt));

  it('on a folder without its marker is refused, unless it accepted a word before', async () => {
    const world = new ManifestFolder();
    await expect(start(world)).rejects.toThrow(`type: eitri-agent local init ${world.folder}`);
    await world.init();
    await start(world);
    const agent = await world.run();
    await until(() => agent.store.inContact());
    await agent.stop();
    rmSync(join(world.folder, '.eitri-lineage'));
    await start(world);
    rmSync(world.folder, { recursive: true });
    await start(world);
  });

  it('on a folder of another lineage is refused, unless it is adopted', async () => {
    const world = await started('web');
    await world.agent.stop();
    rmSync(join(world.folder, '.eitri-lineage'));
    await world.init();
    await expect(start(world)).rejects.toThrow('--adopt');
    await start(world, true);
  });
});

describe('manifests that are only asked about', () => {
  const { signal } = new AbortController();
  const asked = (name: string, text: string) => [{ name, text }];

  it('are read with the folder’s own parser, and nothing of them is written', async () => {
    const { agent, names, text } = await started('web');
    const before = [names(), text('web.yaml'), agent.store.current()];
    const files = [
      ...asked('web.yaml', manifest('web', 'image: tiny\n  cpus: 4')),
      ...asked('db.yaml', `${manifest('db')}---\n${manifest('cache')}`),
    ];
    const read = await agent.plane.read(files, signal);
    if (read.kind !== 'specs') throw new Error(read.why.join());
    const lives = agent.store.imagine(read.specs);
    expect(lives.map((life) => `${life.id} ${life.kind} ${String(life.spec.cpus)}`).toSorted()).toEqual([
      'cache present 1',
      'db present 1',
      'web present 4',
    ]);
    const [web] = agent.store.current()?.lives ?? [];
    expect(lives.find(({ id }) => id === 'web')?.uid).toBe(web?.uid);
    expect([names(), text('web.yaml'), agent.store.current()]).toEqual(before);
  });

  it('that are wrong are refused with every fault by file, line and field', async () => {
    const { agent } = await started();
    const files = [
      ...asked('a.yaml', manifest('a', 'image: tiny\n  cpus: 0\n  memroy: 1GiB')),
      ...asked('torn.yaml', 'spec: {'),
      ...asked('b.yaml', manifest('b')),
      ...asked('again.yaml', manifest('b')),
      ...asked('note.yaml', '# nothing yet\n'),
    ];
    const read = await agent.plane.read(files, signal);
    if (read.kind !== 'refused') throw new Error('it was taken');
    expect(read.why.join('\n')).toMatch(/^a\.yaml:8: spec\.cpus: /m);
    expect(read.why.join('\n')).toMatch(/^a\.yaml:9: .*memory/m);
    expect(read.why.join('\n')).toMatch(/^torn\.yaml:1: /m);
    expect(read.why.join('\n')).toMatch(/^again\.yaml:2: metadata\.name: "b" is declared in b\.yaml:2 too: keep one/m);
    expect(read.why.join('\n')).toMatch(/^note\.yaml: no document/m);
  });

  it('have no file outside of the folder opened for whoever asks', async () => {
    const { agent, folder } = await started('web');
    const outside = join(dirname(folder), 'secret.cfg');
    const ask = async (file: string) =>
      await agent.plane.read(asked('web.yaml', manifest('web', `image: tiny\n  userDataFile: ${file}`)), signal);
    // Whether it is there, or can be read, makes no difference.
    expect(await ask(outside)).toEqual(await ask('/etc/shadow'));
    expect(JSON.stringify(await ask('../secret.cfg'))).toMatch(/web\.yaml:8: .*(leads out|is not there)/);
  });

  it('of a VM that was deleted mean the same life, come back', async () => {
    const { agent } = await started('db', 'web');
    await agent.plane.remove('web' as VmId, signal);
    await reaches(agent, 'db present, web tombstoned');
    const read = await agent.plane.read(asked('web.yaml', manifest('web')), signal);
    if (read.kind !== 'specs') throw new Error(read.why.join());
    const uids = (lives: readonly { readonly id: string; readonly uid: string }[] = []) =>
      lives.map(({ id, uid }) => `${id} ${uid}`);
    const imagined = agent.store.imagine(read.specs);
    expect(uids(imagined)).toEqual(uids(agent.store.current()?.lives));
    expect(imagined.every(({ kind }) => kind === 'present')).toBe(true);
  });
});
