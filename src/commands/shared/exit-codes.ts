import { EXIT } from '@eitri/core/kit';
/**
 * The exit codes of a command, as its help tells them.
 */

const MEANING: Readonly<Record<number, string>> = {
  [EXIT.done]: 'done',
  [EXIT.failed]: 'failed',
  [EXIT.differs]: 'something is not as it is wanted',
  [EXIT.usage]: 'wrong flag or argument',
  [EXIT.badInput]: 'a folder or document is not fit for it',
  [EXIT.notFound]: 'no such VM',
  [EXIT.unreachable]: 'no agent answers',
  [EXIT.cantWriteState]: 'can not write the state, or a file',
  [EXIT.tryAgain]: 'not now: busy, or not in time',
  [EXIT.notPermitted]: 'not permitted to this user',
  [EXIT.badConfiguration]: 'bad configuration, or a host that is not fit',
};

/** The end of a command's description. */
export function exitCodes(...codes: readonly (keyof typeof EXIT)[]): string {
  const shown = [...new Set(['done', 'failed', 'usage', ...codes] as const)].map((name) => EXIT[name]);
  const lines = shown.sort((a, b) => a - b).map((code) => `  ${String(code).padStart(2)}  ${MEANING[code] ?? ''}`);
  return ['', '', 'Exit codes:', ...lines].join('\n');
}
