import { describe, expect, it } from 'vitest';
import { selectBackend } from '../../../src/backends/index.js';
import type { CatalogEntry, SelectionRequest } from '../../../src/backends/index.js';

interface Of {
  readonly refused?: string;
  readonly unfit?: true;
  readonly kind?: 'provisioner' | 'network';
  readonly packageName?: string;
}

const entry = (name: string, of: Of = {}): CatalogEntry => {
  const { kind = 'provisioner', packageName = `@eitri/plugin-${name}`, ...judged } = of;
  const manifest = { contract: 1, kind, name, os: ['linux', 'darwin'], needs: {}, entry: './index.js' };
  return { root: `/plugins/${name}`, origin: 'installed', packageName, version: '1.0.0', manifest, ...judged };
};

const NO_KVM = 'it needs /dev/kvm, which this host does not offer';
const unfit = (name: string): CatalogEntry => entry(name, { refused: NO_KVM, unfit: true });
const broken = (name: string): CatalogEntry => entry(name, { refused: 'its entry is missing' });
/** Nobody can tell what it would have been. */
const torn: CatalogEntry = {
  root: '/plugins/torn', origin: 'linked', packageName: '@x/torn', version: '0.0.0', refused: "its package.json can't be read",
}; // prettier-ignore
const [cloudhv, qemu, other, vfkit] = ['cloudhv', 'qemu', 'other', 'vfkit'].map((name) => entry(name)) as [
  CatalogEntry, CatalogEntry, CatalogEntry, CatalogEntry,
]; // prettier-ignore
const network = entry('netenv', { kind: 'network' });
const twin = entry('qemu', { packageName: '@x/qemu-too' });

const select = (entries: readonly CatalogEntry[], of: Partial<SelectionRequest>): ReturnType<typeof selectBackend> => {
  const none = { lives: 0, names: [] };
  return selectBackend({ entries, os: 'linux', pinned: undefined, asked: undefined, recorded: none, ...of });
};
const vms = (lives: number, ...names: string[]): Pick<SelectionRequest, 'recorded'> => ({ recorded: { lives, names } });

describe('the backend of a host', () => {
  it.each<[string, readonly CatalogEntry[], Partial<SelectionRequest>, string, string]>([
    ['the default when its needs hold', [cloudhv, qemu], {}, 'cloudhv', 'it is the default on linux'],
    ['vfkit by default on macOS', [qemu, vfkit], { os: 'darwin' }, 'vfkit', 'it is the default on darwin'],
    ['the pinned one, whatever else is there', [cloudhv, qemu], { pinned: 'qemu' }, 'qemu', 'bound to it'],
    ['the pinned one, asked for once more', [cloudhv, qemu], { pinned: 'qemu', asked: 'qemu' }, 'qemu', 'bound to it'],
    ['the pinned one, though the default is torn', [broken('cloudhv'), qemu], { pinned: 'qemu' }, 'qemu', 'bound to it'],
    ['the asked one', [cloudhv, qemu], { asked: 'qemu' }, 'qemu', '--backend asked for it'],
    ['the asked one among several', [other, qemu], { asked: 'other' }, 'other', '--backend asked for it'],
    ['the sole other one, the default not being there', [qemu], {}, 'qemu', 'cloudhv is not installed, and it is the only'],
    ['the sole other one, the default lacking something', [unfit('cloudhv'), qemu], {}, 'qemu', NO_KVM],
    ['the sole usable one beside a broken one', [broken('other'), qemu], {}, 'qemu', 'the only other one'],
    ['the sole usable one beside a torn package', [torn, qemu], {}, 'qemu', 'the only other one'],
    ['never a network plugin', [network, qemu], {}, 'qemu', 'cloudhv is not installed'],
    ['the whole one of two packages that offer it', [qemu, entry('qemu', { refused: 'x', packageName: '@x/q' })], { pinned: 'qemu' }, 'qemu', 'bound to it'],
    ['another than the pinned one, asked for, while no VM is recorded', [cloudhv, qemu], { pinned: 'cloudhv', asked: 'qemu' }, 'qemu', 'cloudhv, to which this state was bound, has no VM'],
    ['another than a pinned one that is gone, asked for, while no VM is recorded', [qemu], { pinned: 'cloudhv', asked: 'qemu' }, 'qemu', 'has no VM'],
    ['the one that the records name, when the pin was lost', [cloudhv, qemu], vms(2, 'qemu'), 'qemu', 'its VMs are recorded'],
    ['the asked one of two that records name, when the pin was lost', [cloudhv, qemu], { asked: 'qemu', ...vms(2, 'cloudhv', 'qemu') }, 'qemu', '--backend asked'],
    ['the asked one, when pin and records are lost', [cloudhv, qemu], { asked: 'qemu', ...vms(1) }, 'qemu', '--backend asked'],
  ])('is %s', (_case, entries, of, name, because) => {
    const outcome = select(entries, of);
    expect(outcome).toMatchObject({ ok: true, selection: { entry: { manifest: { name } } } });
    if (outcome.ok) {
      expect(outcome.selection.because).toContain(because);
      expect(outcome.selection.entry.refused).toBeUndefined();
    }
  }); // prettier-ignore

  it.each<[string, readonly CatalogEntry[], Partial<SelectionRequest>, readonly string[]]>([
    ['nothing is installed', [], {}, ['cloudhv is not installed', 'eitri-agent plugins install @eitri/plugin-cloudhv']],
    ['nothing is installed on macOS', [], { os: 'darwin' }, ['eitri-agent plugins install @eitri/plugin-vfkit']],
    ['only the default is there and lacks KVM', [unfit('cloudhv')], {}, [NO_KVM, 'plugins install @eitri/plugin-qemu']],
    ['the default is broken: the choice would outlast the accident', [broken('cloudhv'), qemu], {}, ['@eitri/plugin-cloudhv: its entry is missing', 'put that right', '--backend qemu']],
    ['the default is broken, and alone', [broken('cloudhv')], {}, ['its entry is missing', 'put that right']],
    ['two others qualify', [other, qemu], {}, ['several backends qualify (other, qemu)', '--backend NAME']],
    ['two others qualify, the default lacking KVM', [unfit('cloudhv'), other, qemu], {}, ['several backends qualify (other, qemu)']],
    ['two packages offer the sole one', [qemu, twin], {}, ['@eitri/plugin-qemu and @x/qemu-too', 'plugins uninstall']],
    ['two packages offer the pinned one', [qemu, twin], { pinned: 'qemu' }, ['both offer the backend qemu']],
    ['two packages offer the default', [cloudhv, entry('cloudhv', { packageName: '@x/ch' })], {}, ['both offer the backend cloudhv']],
    ['all that is there is broken', [broken('other')], {}, ['@eitri/plugin-other is off: its entry is missing']],
    ['all that is there is torn', [torn], {}, ["@x/torn is off: its package.json can't be read"]],
    ['the pinned one is gone', [qemu], { pinned: 'cloudhv' }, ['cloudhv is not installed', 'plugins install @eitri/plugin-cloudhv', '--backend NAME']],
    ['the pinned one is gone, and a torn package may be it', [qemu, torn], { pinned: 'cloudhv' }, ['@x/torn is off']],
    ['the pinned one is broken', [broken('qemu'), cloudhv], { pinned: 'qemu' }, ['qemu', 'is off', 'its entry is missing']],
    ['the pinned one lacks KVM', [unfit('cloudhv'), qemu], { pinned: 'cloudhv' }, [NO_KVM]],
    ['the asked one is not there', [qemu], { asked: 'cloudhv' }, ['plugins install @eitri/plugin-cloudhv']],
    ['the asked one lacks KVM', [unfit('cloudhv'), qemu], { asked: 'cloudhv' }, [NO_KVM]],
    ['a network plugin is asked for', [network, qemu], { asked: 'netenv' }, ['netenv is not installed']],
    ['another than the pinned one is asked for, with VMs', [cloudhv, qemu], { pinned: 'qemu', asked: 'cloudhv', ...vms(1) }, ['bound to qemu', 'delete all VMs first', '--state-dir']],
    ['another than the recorded one is asked for, the pin lost', [cloudhv, qemu], { asked: 'cloudhv', ...vms(1, 'qemu') }, ['bound to qemu']],
    ['the pin is lost, and records name two', [cloudhv, qemu], vms(2, 'cloudhv', 'qemu'), ['records name cloudhv and qemu', '--backend NAME']],
    ['the pin is lost, and no record can be read', [cloudhv, qemu], vms(3), ['VMs are recorded (3)', 'no record can be read', '--backend NAME']],
  ])('is refused, with what to do, when %s', (_case, entries, of, words) => {
    const outcome = select(entries, of);
    if (outcome.ok) throw new Error('it was chosen');
    for (const word of words) expect(outcome.why).toContain(word);
  }); // prettier-ignore

  it('that is bound and gone, with VMs, is not offered to be changed', () => {
    const outcome = select([qemu], { pinned: 'cloudhv', ...vms(1) });
    if (outcome.ok) throw new Error('it was chosen');
    expect(outcome.why).not.toContain('--backend NAME');
  });

  it.each(['linux', 'darwin'] as const)('does not hang on the order of the packages, on %s', (os) => {
    const all = [cloudhv, other, vfkit, network];
    expect(select([...all].reverse(), { os })).toEqual(select(all, { os }));
  });
});
