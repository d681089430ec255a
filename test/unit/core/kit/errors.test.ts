import { describe, expect, it } from 'vitest';
import {
  bug,
  causesOf,
  codeOf,
  errorLine,
  EXIT,
  exitCodeOf,
  exitError,
  isBug,
  isPermanent,
  permanent,
  retryable,
  systemCode,
  told,
  withExitCode,
} from '@eitri/core/kit';

describe('a branded error', () => {
  it('is told by its brand through any number of causes, also when another package copy made it', () => {
    const foreign = new Error('no such image');
    Object.defineProperty(foreign, Symbol.for('eitri.error@1'), {
      value: { kind: 'permanent', code: 'ImageNotFound' },
    });
    const wrapped = new Error('create web-1', { cause: new Error('fetch', { cause: foreign }) });
    expect(isPermanent(wrapped)).toBe(true);
    expect(codeOf(wrapped)).toBe('ImageNotFound');
    expect(isPermanent(retryable('busy'))).toBe(false);
    expect(isPermanent(new Error('plain'))).toBe(false);
    expect(isBug(new Error('step', { cause: bug('two VMMs') }))).toBe(true);
  });

  it('gives the outermost code', () => {
    const inner = permanent('inner', { code: 'ImageUnsupported' });
    expect(codeOf(retryable('outer', { cause: inner, code: 'VmmFailed' }))).toBe('VmmFailed');
    expect(codeOf('text')).toBeUndefined();
  });

  it('shows as one line that repeats nothing', () => {
    const line = errorLine(
      new Error('boot web-1', { cause: new Error('start qemu', { cause: new Error('permission denied') }) }),
    );
    expect(line).toBe('boot web-1: start qemu: permission denied');
    expect(errorLine(new Error('read x: gone', { cause: new Error('gone') }))).toBe('read x: gone');
    expect(errorLine(undefined)).toBe('unknown error');
    expect(errorLine({ message: 'like an error' })).toBe('like an error');
    expect(errorLine('text')).toBe('text');
  });

  it('ends a circle of causes', () => {
    const a: Error & { cause?: unknown } = new Error('a');
    const b = new Error('b', { cause: a });
    a.cause = b;
    expect(causesOf(a)).toEqual([a, b]);
    expect(isPermanent(a)).toBe(false);
  });

  it('gives the system code of any cause', () => {
    const system = Object.assign(new Error('ENOSPC: no space'), { code: 'ENOSPC' });
    expect(systemCode(new Error('write record', { cause: system }))).toBe('ENOSPC');
    expect(systemCode(new Error('plain'))).toBeUndefined();
  });
});

it('an error that tells all hides what lies below from people, and nothing else does', () => {
  const below = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
  const error = retryable('start', { cause: told(permanent('the disk is full: free some space', { cause: below })) });
  expect(errorLine(error)).toBe('start: the disk is full: free some space');
  expect(systemCode(error)).toBe('ENOSPC');
  expect(isPermanent(error)).toBe(true);
});

describe('an exit code', () => {
  it('is the one given nearest to the trouble, through any number of wrappers', () => {
    const inner = withExitCode(new Error('full'), EXIT.cantWriteState);
    const outer = withExitCode(new Error('start', { cause: inner }), EXIT.badConfiguration);
    expect(exitCodeOf(outer)).toBe(EXIT.cantWriteState);
    expect(exitCodeOf(withExitCode(inner, EXIT.failed))).toBe(EXIT.cantWriteState);
  });
  it('may be given anew on purpose', () => {
    const inner = withExitCode(new Error('full'), EXIT.cantWriteState);
    expect(exitCodeOf(exitError(EXIT.tryAgain, 'later', inner))).toBe(EXIT.tryAgain);
  });
  it('is nobody’s where none was given', () => {
    expect([new Error('x'), 'text', undefined, null].map(exitCodeOf)).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });
});
