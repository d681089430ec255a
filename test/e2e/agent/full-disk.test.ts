/**
 * The file system of the state directory is full, with a guest running on it. Needs root, to mount a small one.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isTempName } from '../../../src/host/atomic-file.js';
import { prompt, tinyManifest } from '../../support/guests.js';
import { BOOT, Operator } from '../../support/operator.js';
import { freePort } from '../../support/tcp.js';
import { removeFolder, sharedFolder } from '../../support/temp.js';
import { until } from '../../support/until.js';

/** What the image cache keeps free, the images, and what two guests write. */
const SIZE_MIB = 1500;

const disk = sharedFolder('eit-full-');
const filler = join(disk, 'filler');
const operator = new Operator({ state: join(disk, 'state') });
let mounted = false;

beforeAll(() => {
  if (process.getuid?.() !== 0) throw new Error('mounting a small file system needs root: run this file as root');
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${String(SIZE_MIB)}m,mode=711`, 'eitri-test', disk]);
  mounted = true;
});

afterAll(async () => {
  try {
    await operator.remove();
  } finally {
    if (mounted) execFileSync('umount', ['--lazy', disk]);
    removeFolder(disk);
  }
});

/** Takes all room there is. */
function fill(): void {
  for (const bytes of [16 * 2 ** 20, 4096]) {
    try {
      for (;;) writeFileSync(filler, Buffer.alloc(bytes), { flag: 'a' });
    } catch {
      // Full to within this size.
    }
  }
}

const filesOfState = (): readonly string[] =>
  readdirSync(operator.state, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

describe('a state directory whose disk is full', () => {
  it('leaves the guest at work, tells what can’t be done, tears nothing, and goes on when there is room again', async () => {
    const port = await freePort();
    await operator.init();
    operator.put('one.yaml', await tinyManifest({ name: 'one', ports: [[port, 80]], volume: 'data' }));
    await operator.start();
    await operator.untilPrinted('one', prompt('one'));
    const { pid, uid } = await operator.vm('one');
    const console = await operator.console('one');
    // A journal that is committed a moment later would meet the full disk too, and pause the guest: that is the other test.
    await console.ask('sh sync && mount -o remount,ro /data && echo at-rest', /at-rest\r?\n/);

    fill();
    operator.put('two.yaml', await tinyManifest({ name: 'two' }));
    const issues = await until(async () => {
      const found = (await operator.status()).issues.filter(({ message }) => message.includes('ENOSPC'));
      return found.length > 0 ? found : undefined;
    }, BOOT);
    expect(issues.map(({ source }) => source)).toContain(join(operator.state, 'desired.json'));
    expect((await operator.status()).controlPlane.inContact).toBe(false);
    expect((await operator.vms()).map(({ id }) => id)).toEqual(['one']);

    await console.ask('echo still-here', /still-here\r?\n/);
    const response = await fetch(`http://127.0.0.1:${String(port)}/`, { signal: AbortSignal.timeout(30_000) });
    expect(await response.text()).toContain('tiny one ');
    expect(await operator.vm('one')).toMatchObject({ phase: 'Running', pid, uid });
    const files = filesOfState();
    expect(files.filter((file) => isTempName(file.split('/').at(-1) ?? ''))).toEqual([]);
    for (const file of files.filter((name) => name.endsWith('.json'))) {
      expect(() => JSON.parse(readFileSync(file, 'utf8')) as unknown, file).not.toThrow();
    }

    rmSync(filler);
    await operator.untilVm('two', ({ phase }) => phase === 'Running', BOOT);
    expect((await operator.status()).issues).toEqual([]);
    expect((await operator.vm('two')).reason).toBeUndefined();
    expect(await operator.vm('one')).toMatchObject({ phase: 'Running', pid, uid });
    await console.ask('echo here-again', /here-again\r?\n/);
  });

  it('lets a guest that writes onto it stand still, tells what to do, and lets it go on when there is room', async () => {
    const console = await operator.console('one');
    const { pid } = await operator.vm('one');
    fill();
    try {
      console.type('sh dd if=/dev/urandom of=/dev/vdc bs=64k count=64 conv=fsync && echo all-$((60 + 4))');
      const paused = await operator.untilVm('one', ({ phase }) => phase === 'Paused', BOOT);
      expect(paused.message).toMatch(/full/);
      expect(await operator.done('vm', 'list')).toContain('it stands still');
    } finally {
      rmSync(filler);
    }
    // Not an error, not a lost write: the guest never learns that it waited.
    await console.expect(/all-64\r?\n/);
    expect(await operator.untilVm('one', ({ phase }) => phase === 'Running', BOOT)).toMatchObject({ pid, boots: 1 });
  });
});
