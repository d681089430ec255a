/**
 * What an operator reads of plans and explanations, over the real sockets: golden files of a VM in each kind of trouble.
 */
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { VmUid } from '@eitri/core/contracts';
import { retryable } from '@eitri/core/kit';
import { REASONS } from '@eitri/core/reconcile';
import { describe, expect, it } from 'vitest';
import { explainText } from '../../../src/commands/shared/explain-text.js';
import { planText } from '../../../src/commands/shared/plan-text.js';
import { OperatorApi, type OperatorApiOptions } from '../../support/operator-api.js';

const MINUTE = 60_000;

/** The time of day in UTC, wherever the test runs. */
const timeOf = (atMs: number): string => new Date(atMs).toISOString().slice(11, 19);

/** Both answers as they are printed at 80 columns. */
async function asked(api: OperatorApi, name: string): Promise<string> {
  const client = api.client();
  const explained = await client.explain(name, api.signal);
  const plan = await client.plan([], api.signal);
  const text = [
    '$ eitri-agent plan',
    `${planText(plan, 80)}exit ${plan.asWanted ? 0 : 2}`,
    '',
    `$ eitri-agent vm explain ${name}`,
    explainText(explained, 80, timeOf),
  ].join('\n');
  return text.replaceAll(api.stateDir, '/state');
}

function logs(api: OperatorApi, uid: VmUid, said: { readonly vmm?: string; readonly serial?: string }): void {
  const paths = api.pathsOf(uid);
  mkdirSync(dirname(paths.vmmLog), { recursive: true });
  if (said.vmm !== undefined) writeFileSync(paths.vmmLog, said.vmm);
  if (said.serial !== undefined) writeFileSync(paths.serialLog, said.serial);
}

interface Trouble {
  readonly options?: OperatorApiOptions;
  readonly make: (api: OperatorApi) => Promise<void>;
}

const TROUBLES: Readonly<Record<string, Trouble>> = {
  'is as it should be': {
    make: async (api) => {
      await api.running('web-1');
    },
  },
  'is stopped': {
    make: async (api) => {
      api.world.want('web-1', { restart: 'on-failure' });
      await api.world.untilPhase('web-1', 'Running');
      api.world.host.crash(api.world.want('web-1', { restart: 'on-failure' }), { code: 0 });
      await api.world.untilPhase('web-1', 'Stopped');
    },
  },
  'goes down': {
    make: async (api) => {
      const uid = await api.running('web-1');
      api.world.host.faultsOf(uid).powerOffMs = 20_000;
      api.world.want('web-1', { power: 'stopped' });
      await api.world.untilPhase('web-1', 'Stopping');
      await api.world.clock.advance(10_000);
    },
  },
  failed: {
    make: async (api) => {
      const uid = api.world.want('web-1', { diskGib: 2, userData: '#cloud-config\npassword: hunter2\n' });
      api.world.calls.fail(
        'provisioner.boot',
        retryable('boot web-1', {
          cause: new Error('start qemu-system-x86_64', { cause: new Error('permission denied: /dev/kvm') }),
        }),
        9,
      );
      logs(api, uid, { vmm: 'qemu: warning: old CPU\n\u001b[31mqemu: could not open /dev/kvm\u001b[0m\n' });
      await api.world.untilPhase('web-1', 'Failed');
    },
  },
  'waits for a retry': {
    make: async (api) => {
      api.world.want('web-1');
      api.world.calls.fail('imageSource.ensure', new Error('connect ECONNREFUSED 192.0.2.1:443'), 2);
      await api.world.until(() => api.world.status('web-1')?.reason === 'WaitingRetry');
      await api.world.clock.advance(1_000);
    },
  },
  'is blocked by capacity': {
    options: { policy: { maxMemoryMib: 300 } },
    make: async (api) => {
      await api.running('db');
      api.world.want('web-1');
      await api.world.until(() => api.world.status('web-1')?.reason === 'Capacity');
    },
  },
  'is in a crash loop': {
    make: async (api) => {
      const uid = api.world.want('web-1');
      await api.world.untilPhase('web-1', 'Running');
      logs(api, uid, {
        serial: 'Booting\r\n\rloading  50%\rloading 100%\r\n\u001b]0;title\u0007Kernel panic\u001b[2J\r\n',
      });
      api.world.host.faultsOf(uid).diesAfterMs = 3_000;
      api.world.host.faultsOf(uid).exitCode = 1;
      api.world.host.crash(uid, { code: 1, cause: 'triple fault' });
      await api.world.until(() => api.world.record(uid).crashes === 3);
      await api.world.until(() => api.world.status('web-1')?.reason === 'CrashLooping');
    },
  },
  'is shelved': {
    make: async (api) => {
      const uid = await api.running('web-1');
      api.world.desired.tombstone(uid);
      await api.world.untilPhase('web-1', 'Shelved');
      await api.world.clock.advance(MINUTE);
    },
  },
  'is held': {
    make: async (api) => {
      const uid = await api.running('web-1');
      api.world.desired.vanish(uid, true);
      await api.world.until(() => api.world.status('web-1')?.reason === 'HeldMassVanish');
    },
  },
  'has an unreadable record': {
    make: async (api) => {
      const uid = await api.running('web-1');
      await api.world.kill();
      api.world.state.damage(uid);
      await api.restart();
    },
  },
};

describe('plan and explain', () => {
  it.each(Object.keys(TROUBLES))('of a VM that %s say why, in 80 columns', async (name) => {
    const { options, make } = TROUBLES[name] ?? {};
    const api = await OperatorApi.open(options);
    await make?.(api);
    const text = await asked(api, 'web-1');
    for (const line of text.split('\n')) expect(line.length, line).toBeLessThanOrEqual(80);
    expect(JSON.stringify(await api.client().vm('web-1', api.signal))).not.toContain('hunter2');
    // eslint-disable-next-line no-control-regex
    expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]|hunter2/);
    await expect(text).toMatchFileSnapshot(`../../golden/explain/${name.replaceAll(' ', '-')}.txt`);
  });

  it('leave the agent as it was, on the socket that is to look only', async () => {
    const api = await OperatorApi.open();
    const uid = await api.running('web-1');
    api.world.desired.tombstone(uid);
    await api.world.untilPhase('web-1', 'Shelved');
    const before = JSON.stringify(api.world.agent?.engine.report());
    const calls = api.world.calls.entries.length;
    const client = api.client();
    await client.plan([], api.signal);
    await client.explain('web-1', api.signal);
    await client.plan([{ name: 'new.yaml', text: 'web-2' }], api.signal);
    expect(JSON.stringify(api.world.agent?.engine.report())).toBe(before);
    expect(api.world.calls.entries.length).toBe(calls);
  });

  it('of manifests that are not applied: what they would make, and what else would be done', async () => {
    const api = await OperatorApi.open();
    await api.running('web-1');
    const plan = await api.client().plan([{ name: 'new.yaml', text: 'web-2' }], api.signal);
    expect(plan.vms.map(({ id, uid, asWanted, steps }) => [id, uid !== undefined, asWanted, steps.length])).toEqual([
      ['web-1', true, true, 0],
      ['web-2', false, false, 5],
    ]);
    expect(plan.asWanted).toBe(false);
    expect(api.world.status('web-2')).toBeUndefined();
  });

  it('of manifests that can not be applied: every fault by file and line', async () => {
    const api = await OperatorApi.open();
    const files = ['a.yaml', 'b.yaml'].map((name) => ({ name, text: 'bad' }));
    await expect(api.client().plan(files, api.signal)).rejects.toMatchObject({
      kind: 'invalid',
      message: 'a.yaml:1: bad: mend it\nb.yaml:1: bad: mend it',
    });
  });

  it('show no file of the host through a link that stands in the place of a log', async () => {
    const api = await OperatorApi.open();
    const uid = await api.running('web-1');
    const secret = `${api.stateDir}/secret`;
    writeFileSync(secret, 'hunter2\n');
    const { vmmLog } = api.pathsOf(uid);
    symlinkSync(secret, vmmLog);
    expect(existsSync(vmmLog)).toBe(true);
    const explained = await api.client().explain('web-1', api.signal);
    expect(JSON.stringify(explained)).not.toContain('hunter2');
    expect(explained.vmmLog?.lines.join()).toContain('a link stands at');
    const chunks: Buffer[] = [];
    try {
      const log = await api.client().logs('web-1', { which: 'vmm', follow: false }, api.signal);
      for await (const chunk of log) chunks.push(chunk as Buffer);
    } catch {
      // A cut answer.
    }
    expect(Buffer.concat(chunks).toString()).not.toContain('hunter2');
  });

  it('are bounded, however much a guest prints', async () => {
    const api = await OperatorApi.open();
    const uid = await api.running('web-1');
    logs(api, uid, { serial: `${'x'.repeat(100_000)}\n`.repeat(50), vmm: 'y\n'.repeat(100_000) });
    const text = JSON.stringify(await api.client().explain('web-1', api.signal));
    expect(text.length).toBeLessThan(40_000);
  });

  it.each(Object.entries(REASONS))('%s has words for what it means, who said no and what to do', (_code, words) => {
    for (const text of [words.meaning, words.next]) expect(text).toMatch(/^[A-Z].*\.$/);
    expect(words.check).not.toBe('');
  });
});

describe('events', () => {
  it('of a name are those of all its lives, also when none is left; of a uid those of one', async () => {
    const api = await OperatorApi.open();
    const first = await api.running('web-1');
    api.world.desired.tombstone(first);
    await api.world.until(() => api.world.status('web-1') === undefined);
    const types = async (word: string): Promise<readonly string[]> => {
      const found: string[] = [];
      for await (const event of api.client().events(word, false, api.signal)) found.push(event.type);
      return found;
    };
    expect((await types('web-1')).at(-1)).toBe('vm.destroyed');
    const second = await api.running('web-1');
    expect((await types('web-1')).filter((type) => type === 'vm.booted')).toHaveLength(2);
    expect((await types(second)).filter((type) => type === 'vm.booted')).toHaveLength(1);
    expect((await types(first)).at(-1)).toBe('vm.destroyed');
    await expect(types('web-7')).rejects.toMatchObject({ kind: 'notFound' });
  });
});
