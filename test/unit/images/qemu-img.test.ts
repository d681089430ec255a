import { describe, expect, it } from 'vitest';
import { confined, convertArgs, QemuImg } from '../../../src/images/qemu-img.js';
import { isPermanent } from '@eitri/core/kit';
import { calm, ScriptedRunner, someFacts } from '../../support/quiet.js';
import { tempFolder } from '../../support/temp.js';

const args = convertArgs('/i/source', '/i/target');
const user = { uid: 65534, gid: 65534 };

describe('the command line of qemu-img', () => {
  it('as root drops the user, groups, capabilities and any way back, within limits', () => {
    expect(confined({ user, prlimit: true, fileSizeBytes: 1000 }, args).join(' ')).toBe(
      'prlimit --core=0 --as=4294967296 --cpu=3600 --nofile=256 --fsize=1000 -- ' +
        'setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs -- ' +
        'qemu-img convert -f qcow2 -O raw -W -m 16 /i/source /i/target',
    );
  });

  it('is the plain tool where there is neither root nor limits', () => {
    expect(confined({ user: undefined, prlimit: false, fileSizeBytes: 1 }, args)).toEqual(['qemu-img', ...args]);
  });

  it.each([
    ['qemu-img', [], false, /qemu-utils/],
    ['setpriv, as root', ['qemu-img', 'prlimit'], true, /util-linux/],
  ])('without %s is a permanent error that names the package', async (_what, known, root, message) => {
    const tool = new QemuImg(new ScriptedRunner(known), someFacts({ root }), user);
    const folder = tempFolder();
    const job = { what: 'it', source: `${folder}/s`, target: `${folder}/t`, folder: `${folder}/w`, sizeBytes: 1 };
    const error: unknown = await tool.toRaw(job, calm()).catch((thrown: unknown) => thrown);
    expect(String(error)).toMatch(message);
    expect(isPermanent(error)).toBe(true);
  });
});
