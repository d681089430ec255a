import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import { EXIT, exitError } from '@eitri/core/kit';
import { complain, wrap } from '../../../src/app/complaint.js';

const facts = {
  bin: 'eitri-agent',
  commands: ['run', 'vm list', 'vm show', 'doctor'],
  flags: ['json', 'state-dir'],
  command: 'vm list',
  columns: 80,
  debug: false,
};

describe('an error that ends a command', () => {
  it('with a code of its own: the chain in one sentence, and the code', () => {
    const error = exitError(EXIT.cantWriteState, "can't write /state", new Error('EROFS: read-only file system'));
    expect(complain(error, facts)).toEqual({
      text: "error: can't write /state: EROFS: read-only file system",
      exitCode: 73,
    });
  });

  it('without a code: failed, and no stack', () => {
    expect(complain(new TypeError('x is not a function'), facts)).toEqual({
      text: 'error: x is not a function',
      exitCode: 1,
    });
  });

  it('while debugging: the stack too', () => {
    expect(complain(new Error('broken'), { ...facts, debug: true }).text).toContain('complaint.test.ts');
  });

  it('that is only an exit: nothing is said', () => {
    const quiet = Object.assign(new Error('EEXIT: 0'), { code: 'EEXIT', oclif: { exit: 0 } });
    expect(complain(quiet, facts)).toEqual({ exitCode: 0 });
  });

  it('for an unknown flag: names the near one, and where all stand', () => {
    const error = Object.assign(new Error('Nonexistent flag: --jsno\nSee more help with --help'), {
      parse: {},
      flags: ['--jsno'],
      oclif: { exit: 64 },
    });
    expect(complain(error, facts)).toEqual({
      text: 'error: unknown flag --jsno (did you mean --json?): "eitri-agent vm list --help"\n  lists the flags',
      exitCode: 64,
    });
  });

  it('for an unknown command: usage, and the near one', () => {
    expect(complain(new Error('command vm:lst not found'), facts)).toEqual({
      text: 'error: no such command "vm lst" (did you mean "vm list"?): "eitri-agent help"\n  lists all',
      exitCode: 64,
    });
  });

  it('for a missing argument: names it', () => {
    const error = Object.assign(new Error('Missing 1 required arg:\nname  name of the VM'), {
      parse: {},
      args: [{ name: 'name' }],
      oclif: { exit: 64 },
    });
    expect(complain(error, facts).text).toBe('error: missing NAME: see "eitri-agent vm list --help"');
  });
});

describe('breaking a sentence', () => {
  it('loses no word, and no line of several words is too long', () => {
    fc.assert(
      fc.property(fc.array(fc.stringMatching(/^[a-z/]{1,100}$/), { minLength: 1, maxLength: 40 }), (words) => {
        const lines = wrap(words.join(' '), 80).split('\n');
        expect(
          lines
            .join(' ')
            .split(/\s+/)
            .filter((word) => word !== ''),
        ).toEqual(words);
        for (const line of lines) if (line.trim().includes(' ')) expect(line.length).toBeLessThanOrEqual(80);
      }),
    );
  });
});
