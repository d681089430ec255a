import type { AgentEvent, NewEvent, VmId } from '@eitri/core/contracts';
import { describe, expect, it } from 'vitest';
import { EventPrinter, formatEvent } from '../../../src/app/event-printer.js';

const at = Date.UTC(2026, 0, 2, 14, 5, 9);
const timeOf = (ms: number): string => new Date(ms).toISOString().slice(11, 19);
const event = (of: Partial<NewEvent> & { message: string }): AgentEvent => ({
  seq: 1,
  at,
  type: 'vm.note',
  level: 'info',
  id: 'web-1' as VmId,
  ...of,
});
const progress = (fraction: number, message: string, id = 'web-1'): AgentEvent =>
  event({ type: 'image.download', id: id as VmId, progress: fraction, message });

const printed = (columns: number | undefined) => {
  const parts: string[] = [];
  const printer = new EventPrinter({ write: (text) => parts.push(text), columns: () => columns, timeOf });
  return { printer, text: () => parts.join('') };
};

describe('an event as a line', () => {
  it('has its time, its VM, what happened, and why', () => {
    const lines = [
      event({ message: 'accepted: 2 vCPU, 2048 MiB' }),
      event({ message: 'start qemu: no such file', level: 'error', reason: 'BackendMissing' }),
      event({ message: 'SIGTERM', level: 'warn', id: 'a-name-that-is-longer-than-the-column' as VmId }),
    ].map((one) => formatEvent(one, timeOf));
    const { id, ...agent } = event({ message: 'agent on host-1: local folder /etc/eitri' });
    expect([...lines, formatEvent(agent, timeOf)].join('\n')).toBe(
      [
        '14:05:09 web-1        accepted: 2 vCPU, 2048 MiB',
        '14:05:09 web-1        error: start qemu: no such file (BackendMissing)',
        '14:05:09 a-name-that-is-longer-than-the-column warning: SIGTERM',
        '14:05:09 agent        agent on host-1: local folder /etc/eitri',
      ].join('\n'),
    );
  });

  it('from a tool that steers terminals: steers nothing', () => {
    expect(formatEvent(event({ message: 'a\u001b[2Jb\r\nc\u009bd\n' }), timeOf)).toBe(
      '14:05:09 web-1        a [2Jb c d',
    );
  });
});

describe('printing to a terminal', () => {
  it('draws what goes on anew on one line, below the lines that stay', () => {
    const { printer, text } = printed(80);
    printer.print(progress(0.1, 'downloading: 10 %'));
    printer.print(progress(0.2, 'downloading: 20 %'));
    printer.print(event({ id: 'web-2' as VmId, message: 'started' }));
    printer.print(event({ message: 'image ready' }));
    expect(text()).toBe(
      [
        'web-1: downloading: 10 %',
        '\r\u001b[2Kweb-1: downloading: 20 %',
        '\r\u001b[2K14:05:09 web-2        started\nweb-1: downloading: 20 %',
        '\r\u001b[2K14:05:09 web-1        image ready\n',
      ].join(''),
    );
  });

  it('that is narrow: never fills the line, which would wrap', () => {
    const { printer, text } = printed(30);
    for (const id of ['a', 'b', 'c']) printer.print(progress(0.5, 'downloading: 50 %', id));
    const last = text().split('\u001b[2K').at(-1) ?? '';
    expect(last).toBe('a: downloading: 50 %  b: dow…');
    expect(last).toHaveLength(29);
  });

  it('draws a boot that goes on, and ends its line when the VM runs', () => {
    const { printer, text } = printed(80);
    const booting = (message: string): AgentEvent => event({ type: 'vm.boot', progress: 0, message });
    printer.print(booting('starting: 0 s since its VMM was started'));
    printer.print(booting('starting: 1 s since its VMM was started'));
    printer.print(event({ type: 'vm.running', message: 'running 2 s after its VMM was started' }));
    printer.print(event({ id: 'web-2' as VmId, message: 'started' }));
    expect(text()).toBe(
      [
        'web-1: starting: 0 s since its VMM was started',
        '\r\u001b[2Kweb-1: starting: 1 s since its VMM was started',
        '\r\u001b[2K14:05:09 web-1        running 2 s after its VMM was started\n',
        '14:05:09 web-2        started\n',
      ].join(''),
    );
  });

  it('ends: the moving line is gone', () => {
    const { printer, text } = printed(80);
    printer.print(progress(0.1, 'downloading'));
    printer.end();
    expect(text().endsWith('\r\u001b[2K')).toBe(true);
  });
});

describe('printing where no terminal is', () => {
  it('tells progress by quarters only, and again for another image', () => {
    const { printer, text } = printed(undefined);
    for (let percent = 0; percent <= 100; percent++)
      printer.print(progress(percent / 100, `downloading: ${percent} %`));
    printer.print(event({ message: 'image ready' }));
    printer.print(progress(0, 'downloading: 0 %'));
    expect(text()).not.toContain('\u001b');
    expect(
      text()
        .split('\n')
        .map((line) => line.slice(22)),
    ).toEqual([
      'downloading: 0 %',
      'downloading: 25 %',
      'downloading: 50 %',
      'downloading: 75 %',
      'downloading: 100 %',
      'image ready',
      'downloading: 0 %',
      '',
    ]);
  });
});
