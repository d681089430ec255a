import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { bug, permanent } from '@eitri/core/kit';
import { PinoLogger, type LogLevel } from '../../../src/host/log.js';
import { tempFolder } from '../../support/temp.js';
import { until } from '../../support/until.js';

function capture(level: LogLevel = 'debug'): { readonly log: PinoLogger; readonly lines: Record<string, unknown>[] } {
  const lines: Record<string, unknown>[] = [];
  const log = PinoLogger.to(
    { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
    level,
  );
  return { log, lines };
}

describe('a log line', () => {
  it('has its event, its level by name, its time and its fields', () => {
    const { log, lines } = capture();
    log.child({ vmId: 'web-1' }).warn('vm.boot.slow', { attempt: 2 });
    expect(lines).toEqual([
      {
        level: 'warn',
        time: expect.stringMatching(/^\d{4}-.*Z$/) as string,
        vmId: 'web-1',
        attempt: 2,
        event: 'vm.boot.slow',
      },
    ]);
  });

  it('shows an error as one chain with what can be told about it, and no stack', () => {
    const { log, lines } = capture();
    const cause = Object.assign(new Error('no space left'), { code: 'ENOSPC' });
    log.error('vm.create.failed', { err: permanent('write record', { cause, code: 'VmmFailed' }) });
    expect(lines[0]?.['err']).toEqual({
      chain: 'write record: no space left',
      reason: 'VmmFailed',
      system: 'ENOSPC',
      permanent: true,
    });
  });

  it('keeps the stack where an invariant broke', () => {
    const { log, lines } = capture();
    log.error('bug', { err: bug('never') });
    expect(lines[0]?.['err']).toMatchObject({ chain: 'never', stack: expect.stringContaining('log.test') as string });
  });

  it('never shows a secret that somebody passed', () => {
    const { log, lines } = capture();
    log.info('joined', { token: 'abc', server: { credential: 'def' } });
    expect(JSON.stringify(lines)).not.toMatch(/abc|def/);
  });

  it('below the level is not written', () => {
    const { log, lines } = capture('warn');
    log.info('x');
    expect(lines).toEqual([]);
  });

  it('with fields that can not be serialised still tells its event, and throws nothing', () => {
    const { log, lines } = capture();
    log.info('odd', {
      get trap(): string {
        throw new Error('no');
      },
    });
    const circle: Record<string, unknown> = {};
    circle['self'] = circle;
    log.info('circle', { circle, big: 1n });
    expect(lines.map((line) => line['event'])).toEqual(['odd', 'circle']);
  });
});

describe('a log file', () => {
  it('is private, is appended to, and is whole after a flush', async () => {
    const file = join(tempFolder(), 'agent.log');
    for (const event of ['first', 'second']) {
      const log = PinoLogger.open({ level: 'info', file });
      log.info(event);
      await until(() => {
        log.flush();
        return readFileSync(file, 'utf8').includes(event);
      });
    }
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(file, 'utf8').trim().split('\n')).toHaveLength(2);
  });
});
