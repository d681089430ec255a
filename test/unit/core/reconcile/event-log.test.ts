import { describe, expect, it } from 'vitest';
import { ManualClock } from '@eitri/conformance';
import { EventLog } from '@eitri/core/reconcile';

describe('the event log', () => {
  it('numbers events, keeps the newest, and tells those after a number', () => {
    const log = new EventLog(new ManualClock(), 3);
    for (const message of ['a', 'b', 'c', 'd']) log.emit({ type: 'x', level: 'info', message });
    expect(log.since(0).map((e) => e.message)).toEqual(['b', 'c', 'd']);
    expect(log.since(3).map((e) => e.seq)).toEqual([4]);
  });

  it('tells progress to listeners and does not keep it: it would push out what matters', () => {
    const log = new EventLog(new ManualClock(), 3);
    const heard: string[] = [];
    const leave = log.listen((e) => heard.push(e.message));
    log.emit({ type: 'image.download', level: 'info', message: '50 %', progress: 0.5 });
    leave();
    log.emit({ type: 'x', level: 'info', message: 'later' });
    expect(heard).toEqual(['50 %']);
    expect(log.since(0).map((e) => e.message)).toEqual(['later']);
  });
});
