import { describe, expect, test } from 'vitest';
import { findFirmware, firmwareAdvice, firmwarePlaces, type SizeOf } from '../../../plugins/qemu/src/firmware.js';

const MIB = 2 ** 20;
const CODE_4M = 3_653_632;
const VARS_4M = 540_672;
const CODE_2M = 1_966_080;
const VARS_2M = 131_072;

const disk =
  (files: Readonly<Record<string, number>>): SizeOf =>
  (path) =>
    Promise.resolve(files[path]);
const debian = {
  '/usr/share/OVMF/OVMF_CODE_4M.fd': CODE_4M,
  '/usr/share/OVMF/OVMF_VARS_4M.fd': VARS_4M,
  '/usr/share/OVMF/OVMF_CODE.fd': CODE_2M,
  '/usr/share/OVMF/OVMF_VARS.fd': VARS_2M,
};
const x64 = firmwarePlaces('linux', 'x64', '/usr/bin/qemu-system-x86_64');

describe('firmware', () => {
  test('both families are there: the 4 MiB one is taken', async () => {
    expect(await findFirmware(x64, 'x64', disk(debian))).toEqual({
      code: '/usr/share/OVMF/OVMF_CODE_4M.fd',
      varsTemplate: '/usr/share/OVMF/OVMF_VARS_4M.fd',
      varsBytes: VARS_4M,
    });
  });

  test("a guest has variables of the 2 MiB family: it gets that family's code", async () => {
    const found = await findFirmware(x64, 'x64', disk(debian), VARS_2M);
    expect(found?.code).toBe('/usr/share/OVMF/OVMF_CODE.fd');
  });

  test('no code goes with the variables that a guest has: nothing is found, rather than a flash of two halves', async () => {
    expect(await findFirmware(x64, 'x64', disk(debian), 12_345)).toBeUndefined();
  });

  test('code and variables of two families stand side by side: the pair is passed over', async () => {
    const mixed = { ...debian, '/usr/share/OVMF/OVMF_VARS_4M.fd': VARS_2M };
    expect((await findFirmware(x64, 'x64', disk(mixed)))?.code).toBe('/usr/share/OVMF/OVMF_CODE.fd');
  });

  test('Arm code that is not padded to a whole flash is passed over', async () => {
    const places = firmwarePlaces('linux', 'arm64', '/usr/bin/qemu-system-aarch64');
    const files = { '/usr/share/AAVMF/AAVMF_CODE.fd': 2 * MIB, '/usr/share/AAVMF/AAVMF_VARS.fd': 64 * MIB };
    expect(await findFirmware(places, 'arm64', disk(files))).toBeUndefined();
    const padded = { ...files, '/usr/share/AAVMF/AAVMF_CODE.fd': 64 * MIB };
    expect((await findFirmware(places, 'arm64', disk(padded)))?.code).toBe('/usr/share/AAVMF/AAVMF_CODE.fd');
  });

  test("Homebrew's QEMU stands outside the usual folder: its own firmware is found beside it", async () => {
    const share = '/Users/x/brew/Cellar/qemu/9.1.0/share/qemu';
    const places = firmwarePlaces('darwin', 'arm64', '/Users/x/brew/Cellar/qemu/9.1.0/bin/qemu-system-aarch64');
    const files = { [`${share}/edk2-aarch64-code.fd`]: 64 * MIB, [`${share}/edk2-arm-vars.fd`]: 64 * MIB };
    expect((await findFirmware(places, 'arm64', disk(files)))?.code).toBe(`${share}/edk2-aarch64-code.fd`);
  });

  test('there is none: the advice names the package of this architecture', () => {
    expect(firmwareAdvice('linux', 'x64')).toContain('ovmf');
    expect(firmwareAdvice('linux', 'arm64')).toContain('qemu-efi-aarch64');
    expect(firmwareAdvice('darwin', 'arm64')).toContain('brew install qemu');
  });
});
