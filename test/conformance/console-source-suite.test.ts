import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  consoleSourceCases,
  consoleSourceFaults,
  consoleSourceSuite,
  FakeConsole,
  FaultyConsoleSource,
  type ConsoleSourceContext,
  type ConsoleSourceFault,
} from '@eitri/conformance';
import type { VmUid } from '@eitri/core/contracts';
import { expectCaught } from '../support/caught.js';

function contextWith(fault: ConsoleSourceFault | undefined, keepsBacklog = false): ConsoleSourceContext {
  const lines = new FakeConsole({ keepsBacklog });
  return {
    source: new FaultyConsoleSource(lines, fault),
    newGuest: () => {
      const uid = randomUUID() as VmUid;
      const line = lines.line(uid);
      line.powerOn();
      return Promise.resolve({
        uid,
        print: (bytes) => {
          line.print(bytes);
          return Promise.resolve();
        },
        typed: () => line.typed(),
        reboot: () => {
          line.reboot();
          return Promise.resolve();
        },
        gone: () => {
          line.gone();
          return Promise.resolve();
        },
      });
    },
  };
}

consoleSourceSuite('console source: lines in memory', () => contextWith(undefined));
consoleSourceSuite('console source: lines in memory that keep a backlog', () => contextWith(undefined, true));

/** Which cases each fault must make fail. */
const CAUGHT: Readonly<Record<ConsoleSourceFault, readonly string[]>> = {
  'reads text': ['a guest prints every byte value in small pieces: all arrive, in order'],
  'loses much output': ['a guest prints 256 KiB at once: all of it arrives'],
  'types text': ['every byte value is written: the guest gets all, in order'],
  'ignores its signal': ['the signal is aborted already: opening rejects, ten times'],
  'ties the stream to its signal': ['the signal is aborted once the line is open: both directions go on'],
  'opens a line that leads nowhere': ['the guest is gone: opening rejects, ten times, and never as permanent'],
  'gives up for good': ['the guest is gone: opening rejects, ten times, and never as permanent'],
  'hides the end': [
    'the guest goes while its line is open: what it printed last is read, and the stream ends',
    'the caller half-closes: what was printed before is read, and the stream comes to its end',
  ],
  'opens once only': ['the line is opened and let go ten times: it works each time'],
  'replays history': ['the guest reboots: the line is there again, and carries what is printed then, once'],
  'cuts off at half-close': [
    'the caller half-closes: what was printed before is read, and the stream comes to its end',
  ],
  'has one line for all': ['two guests print: each line carries its own guest, and types to it'],
};

describe('console source suite', () => {
  for (const fault of consoleSourceFaults) {
    for (const name of CAUGHT[fault]) {
      it.concurrent(`a source that ${fault}: "${name}" fails`, async () => {
        const found = consoleSourceCases.find((one) => one.name === name);
        if (found === undefined) throw new Error(`no case is called "${name}"`);
        await expectCaught(found, () => contextWith(fault));
      });
    }
  }

  it('has no case that no broken source fails', () => {
    const caught = new Set(Object.values(CAUGHT).flat());
    expect(consoleSourceCases.map((one) => one.name).filter((name) => !caught.has(name))).toEqual([]);
  });
});
