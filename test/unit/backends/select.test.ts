import { describe, expect, it } from 'vitest';
import { selectBackend } from '../../../src/backends/index.js';
import type { CatalogEntry } from '../../../src/backends/index.js';

const entry = (name: string, refused?: string, kind: 'provisioner' | 'network' = 'provisioner'): CatalogEntry => ({
  root: `/plugins/${name}`,
  origin: 'installed',
  packageName: `@eitri/plugin-${name}`,
  version: '1.0.0',
  manifest: { contract: 1, kind, name, os: ['linux', 'darwin'], needs: {}, entry: './index.js' },
  ...(refused === undefined ? {} : { refused }),
});

const kvm = 'it needs /dev/kvm, which this host does not offer';
const [cloudhv, qemu, other, vfkit] = ['cloudhv', 'qemu', 'other', 'vfkit'].map((name) => entry(name)) as [
  CatalogEntry, CatalogEntry, CatalogEntry, CatalogEntry,
]; // prettier-ignore

describe('the backend of a host', () => {
  it.each([
    ['the default when its needs hold', [cloudhv, qemu], {}, 'cloudhv', 'it is the default on linux'],
    ['the pinned one, whatever else is there', [cloudhv, qemu], { pinned: 'qemu' }, 'qemu', 'bound to it'],
    ['the asked one', [cloudhv, qemu], { asked: 'qemu' }, 'qemu', '--backend asked for it'],
    ['the only other one when the default is not there', [qemu], {}, 'qemu', 'cloudhv is not installed'],
    ['the only other one when the default lacks something', [entry('cloudhv', kvm), qemu], {}, 'qemu', kvm],
    ['the only usable one beside broken ones', [entry('other', 'broken'), qemu], {}, 'qemu', 'the only other one'],
    ['no network plugin', [entry('netenv', undefined, 'network'), qemu], {}, 'qemu', 'cloudhv is not installed'],
  ] as const)('is %s', (_case, entries, of, name, because) => {
    const outcome = selectBackend({ entries, os: 'linux', pinned: undefined, asked: undefined, ...of });
    expect(outcome).toMatchObject({ ok: true, selection: { entry: { manifest: { name } } } });
    if (outcome.ok) expect(outcome.selection.because).toContain(because);
  });

  it('is vfkit by default on macOS', () => {
    const outcome = selectBackend({ entries: [qemu, vfkit], os: 'darwin', pinned: undefined, asked: undefined });
    expect(outcome).toMatchObject({ ok: true, selection: { entry: { manifest: { name: 'vfkit' } } } });
  });

  it.each([
    ['nothing is installed', [], {}, ['cloudhv is not installed', 'eitri-agent plugins install @eitri/plugin-cloudhv']],
    [
      'only the default is there and lacks KVM',
      [entry('cloudhv', kvm)],
      {},
      [kvm, 'plugins install @eitri/plugin-qemu'],
    ],
    ['two others qualify', [other, qemu], {}, ['several backends qualify (other, qemu)', '--backend NAME']],
    [
      'the pinned one is gone',
      [qemu],
      { pinned: 'cloudhv' },
      ['cloudhv is not installed', 'plugins install @eitri/plugin-cloudhv'],
    ],
    ['the pinned one is broken', [entry('qemu', 'its entry is missing')], { pinned: 'qemu' }, ['its entry is missing']],
    [
      'another than the pinned one is asked for',
      [cloudhv, qemu],
      { pinned: 'qemu', asked: 'cloudhv' },
      ['bound to qemu', '--state-dir'],
    ],
    ['the asked one is not there', [qemu], { asked: 'cloudhv' }, ['plugins install @eitri/plugin-cloudhv']],
  ] as const)('is refused, with what to do, when %s', (_case, entries, of, words) => {
    const outcome = selectBackend({ entries, os: 'linux', pinned: undefined, asked: undefined, ...of });
    if (outcome.ok) throw new Error('it was chosen');
    for (const word of words) expect(outcome.why).toContain(word);
  });
});
