import { appendFileSync, linkSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { failureReasonOf, markRun, readFailureReason } from '../../../plugins/qemu/src/vmm-log.js';
import { tempFolder } from '../../support/temp.js';

const q = 'qemu-system-x86_64: ';

describe('the reason of a failure', () => {
  test.each([
    [
      'a disk that is gone',
      `${q}-drive file=/nope.raw: Could not open '/nope.raw': No such file or directory\n`,
      "-drive file=/nope.raw: Could not open '/nope.raw': No such file or directory",
    ],
    [
      'a warning before it',
      `${q}warning: host doesn't support requested feature\n${q}-accel kvm: failed to initialize kvm: No such file or directory\n`,
      '-accel kvm: failed to initialize kvm: No such file or directory',
    ],
    [
      'warnings after it',
      `${q}-m: cannot set up guest memory 'pc.ram': Cannot allocate memory\n${q}warning: something else\n`,
      "-m: cannot set up guest memory 'pc.ram': Cannot allocate memory",
    ],
    [
      'a lock, which takes two lines',
      `${q}-device virtio-blk-pci,drive=root: Failed to get "write" lock\nIs another process using the image [/d/disk.raw]?\n`,
      '-device virtio-blk-pci,drive=root: Failed to get "write" lock Is another process using the image [/d/disk.raw]?',
    ],
    [
      'an assertion, whose cause is the line before',
      `${q}error: failed to set MSR 0x10a to 0x69\n${q}../../target/i386/kvm/kvm.c:3183: kvm_buf_set_msrs: Assertion \`ret' failed.\n`,
      'failed to set MSR 0x10a to 0x69',
    ],
    [
      'registers after it',
      `KVM internal error. Suberror: 1\nEAX=00000000 EBX=00807000\n${q}terminating on signal 15 from pid 1 (x)\n`,
      'KVM internal error. Suberror: 1',
    ],
    [
      'a loader, not QEMU',
      'error while loading shared libraries: libfoo.so.1: cannot open shared object file\n',
      'error while loading shared libraries: libfoo.so.1: cannot open shared object file',
    ],
  ])('%s: it is the cause that is quoted', (_, log, reason) => {
    expect(failureReasonOf(log)).toBe(reason);
  });

  test.each([
    ['nothing was said', ''],
    [
      'it fell back to emulation',
      `Could not access KVM kernel module: No such file or directory\n${q}falling back to tcg\n`,
    ],
    ['an accelerator is unknown', `${q}invalid accelerator hvf\n${q}falling back to tcg\n`],
    ['only warnings', `${q}warning: TCG doesn't support requested feature\n`],
    ['it was told to end', `${q}terminating on signal 15 from pid 4711 (node)\n`],
    [
      'a module of a screen is missing',
      'qemu: module ui-ui-gtk not found, do you want to install qemu-system-gui package?\n',
    ],
  ])('%s: there is none', (_, log) => {
    expect(failureReasonOf(log)).toBeUndefined();
  });

  test('an earlier run failed and the last one said nothing: the old cause is not quoted again', async () => {
    const log = join(tempFolder(), 'vmm.log');
    await markRun(log, 0);
    appendFileSync(log, `${q}-m: out of memory\n`);
    expect(await readFailureReason(log)).toBe('-m: out of memory');
    await markRun(log, 1_000);
    expect(await readFailureReason(log)).toBeUndefined();
  });

  test('there is no log yet: there is no reason', async () => {
    expect(await readFailureReason(join(tempFolder(), 'vmm.log'))).toBeUndefined();
  });

  test('a run that said a lot: only the end of the log is read, and the cause is found there', async () => {
    const log = join(tempFolder(), 'vmm.log');
    writeFileSync(log, `${'x'.repeat(79)}\n`.repeat(5_000));
    appendFileSync(log, `${q}-device x: it broke\n`);
    expect(await readFailureReason(log)).toBe('-device x: it broke');
  });
});

describe('the log', () => {
  test('it is readable by its owner only', async () => {
    const log = join(tempFolder(), 'vmm.log');
    await markRun(log, 0);
    expect(statSync(log).mode & 0o777).toBe(0o600);
  });

  test.each([
    ['a link to another file', (log: string, other: string) => symlinkSync(other, log)],
    ['a second name of another file', (log: string, other: string) => linkSync(other, log)],
  ])('%s stands in its place: nothing is written through it, and nothing shown of it', async (_, put) => {
    const folder = tempFolder();
    const [log, other] = [join(folder, 'vmm.log'), join(folder, 'secret')];
    writeFileSync(other, `${q}a secret\n`);
    put(log, other);
    await expect(markRun(log, 0)).rejects.toThrow();
    expect(readFileSync(other, 'utf8')).toBe(`${q}a secret\n`);
    expect(await readFailureReason(log)).toBeUndefined();
  });
});
