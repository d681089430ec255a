import { describe, expect, it } from 'vitest';
import { errorLine, EXIT, exitCodeOf, isPermanent, retryable } from '@eitri/core/kit';
import { stateBadError, stateWriteError } from '../../../src/state/state-error.js';

const failed = (code: string): Error => Object.assign(new Error(`${code}: it failed`), { code });

describe('a state that can not be written', () => {
  it.each([
    ['ENOSPC', 'is full: free some space'],
    ['EDQUOT', 'quota'],
    ['EROFS', 'read-only: remount it writable'],
    ['EACCES', 'may not write there'],
    ['EPERM', 'may not write there'],
    ['ENOENT', 'removed meanwhile: give another --state-dir'],
    ['ELOOP', 'symbolic links'],
    ['ENAMETOOLONG', 'longer than'],
    ['EWEIRD', '(EWEIRD): give another --state-dir'],
  ])('for %s is told with its path and the next step, is worth a retry, and ends a command with 73', (code, step) => {
    const error = stateWriteError(
      'write the record of web-1',
      '/s/record.json',
      retryable('write', { cause: failed(code) }),
    );
    expect(errorLine(error)).toContain('/s/record.json');
    expect(errorLine(error)).toContain(step);
    expect(errorLine(error)).not.toContain('it failed');
    expect(isPermanent(error)).toBe(false);
    expect(exitCodeOf(retryable('start', { cause: error }))).toBe(EXIT.cantWriteState);
  });
});

it('a state that can not be understood is permanent, and other errors ask for no exit code', () => {
  expect(isPermanent(stateBadError('/s/control.json', 'it is empty'))).toBe(true);
  expect(exitCodeOf(failed('ENOSPC'))).toBeUndefined();
  expect(exitCodeOf('text')).toBeUndefined();
});
