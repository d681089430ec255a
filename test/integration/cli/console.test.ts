/** `vm console` of the built command line, at a real terminal and on pipes, with a guest in the test's hands. */
import { readFileSync } from 'node:fs';
import type { VmUid } from '@eitri/core/contracts';
import { spawn as spawnTerminal, type IPty } from 'node-pty';
import { describe, expect, it, onTestFinished } from 'vitest';
import { AGENT_ROOT, runCli } from '../../support/cli.js';
import { OperatorApi } from '../../support/operator-api.js';
import { until } from '../../support/until.js';

interface Terminal {
  readonly pty: IPty;
  readonly text: () => string;
}

/** The console at a terminal, in a shell that shows the terminal's settings afterwards. */
function terminal(api: OperatorApi, ...flags: string[]): Terminal {
  const command = [process.execPath, `${AGENT_ROOT}/bin/run.js`, 'vm', 'console', 'web-1', ...flags];
  const line = `${[...command, '--run-dir', api.runDir].map((word) => `'${word}'`).join(' ')}; echo "exit $?"; stty -a`;
  const pty = spawnTerminal('sh', ['-c', line], { cols: 80, rows: 24, env: { PATH: process.env['PATH'] } });
  onTestFinished(() => {
    pty.kill('SIGKILL');
  });
  let seen = '';
  pty.onData((data) => (seen += data));
  return { pty, text: () => seen };
}

async function guest() {
  const api = await OperatorApi.open();
  const line = api.lines.line(await api.running('web-1'));
  await until(() => line.connected === 1);
  line.print('Linux boots\r\nlogin: ');
  return { api, line };
}

const isRestored = (text: string): boolean =>
  text.includes(' icanon') && text.includes(' echo ') && !text.includes('-icanon');

describe('a console at a terminal', () => {
  it('says how to leave, shows what was before, gives every key to the guest, and leaves by Ctrl-]', async () => {
    const { api, line } = await guest();
    const { pty, text } = terminal(api);
    await until(() => text().includes('login: '));
    expect(text()).toContain('console of web-1: Ctrl-] leaves');
    // Ctrl-C, Ctrl-Z, Ctrl-D and Ctrl-\ are the guest's too.
    pty.write('root\r\u0003\u001a\u0004\u001c');
    await until(() => line.typed().toString() === 'root\r\u0003\u001a\u0004\u001c');
    line.print('# ');
    await until(() => text().includes('login: # '));
    pty.write('x\u001dnot typed any more');
    await until(() => text().includes('exit 0') && text().includes('icanon'));
    expect(line.typed().toString()).toBe('root\r\u0003\u001a\u0004\u001cx');
    expect(isRestored(text())).toBe(true);
  });

  it.each(['SIGTERM', 'SIGHUP'] as const)('is ended by %s: the terminal is as it was', async (signal) => {
    const { api } = await guest();
    const { pty, text } = terminal(api);
    await until(() => text().includes('login: '));
    process.kill(childOf(pty.pid), signal);
    await until(() => text().includes('icanon'));
    expect(isRestored(text())).toBe(true);
  });

  it('is taken over: says by whom, and restores the terminal', async () => {
    const { api, line } = await guest();
    const first = terminal(api);
    await until(() => first.text().includes('login: '));
    const refused = await runCli(['vm', 'console', 'web-1', '--run-dir', api.runDir]);
    expect(refused.code).toBe(75);
    expect(refused.stderr).toContain('is typing on this console already');
    const second = terminal(api, '--force');
    await until(() => first.text().includes('took over the console of web-1'));
    await until(() => first.text().includes('exit 75') && isRestored(first.text()));
    second.pty.write('mine');
    await until(() => line.typed().toString() === 'mine');
  });

  it('loses its agent: says that the guest runs on', async () => {
    const { api } = await guest();
    const { text } = terminal(api);
    await until(() => text().includes('login: '));
    await api.server.close(1_000);
    await until(() => text().includes('icanon'));
    expect(text()).toContain('the console of web-1 ended');
    expect(isRestored(text())).toBe(true);
  });

  it('is to look only: no key reaches the guest, and Ctrl-] leaves', async () => {
    const { api, line } = await guest();
    const { pty, text } = terminal(api, '--read-only');
    await until(() => text().includes('login: '));
    pty.write('reboot\r\u001d');
    await until(() => text().includes('exit 0'));
    expect(line.typed().toString()).toBe('');
  });
});

describe('a console on pipes', () => {
  it('types what comes, shows what comes of it, and ends when the guest is quiet', async () => {
    const { api, line } = await guest();
    const done = runCli(['vm', 'console', 'web-1', '--no-backlog', '--run-dir', api.runDir], {
      input: 'uptime\r\u001d',
    });
    // Ctrl-] in a pipe is a byte like any other.
    await until(() => line.typed().toString() === 'uptime\r\u001d');
    line.print('up 3 min\r\n');
    const { code, stdout, stderr } = await done;
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'up 3 min\r\n', stderr: '' });
  });

  it('to look only: follows until the guest goes, and does not read its input', async () => {
    const { api, line } = await guest();
    let printed = '';
    const done = runCli(['vm', 'console', 'web-1', '--read-only', '--run-dir', api.runDir], {
      input: 'ignored',
      onStdout: (text) => (printed = text),
    });
    await until(() => printed.includes('login: '));
    line.print('Power down\r\n');
    line.gone();
    await api.consoles.stop(uidOf(api));
    const { code, stdout } = await done;
    expect(code).toBe(0);
    expect(stdout).toBe('Linux boots\r\nlogin: Power down\r\n');
    expect(line.typed().toString()).toBe('');
  });
});

function uidOf(api: OperatorApi): VmUid {
  const [vm] = api.agent.engine.report().vms;
  if (vm === undefined) throw new Error('there is no VM');
  return vm.uid;
}

/** The only child of a process. */
function childOf(pid: number): number {
  const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
  return Number(child);
}
