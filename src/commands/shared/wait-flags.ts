/**
 * The flags of commands that can wait until what they changed is so, and whether they shall.
 */
import { Flags } from '@oclif/core';

export const waitFlags = {
  wait: Flags.boolean({
    allowNo: true,
    description: 'wait until it is so (default: at a terminal only)',
  }),
  timeout: Flags.string({ default: '5m', helpValue: 'DURATION', description: 'how long to wait at most' }),
};

export interface WaitFlags {
  readonly wait: boolean;
  readonly timeout: string;
}

/** oclif gives false for a flag that was not given, too; what was typed tells the two apart. */
export function shallWait(flags: WaitFlags, argv: readonly string[]): boolean {
  const said = argv.some((word) => word === '--wait' || word === '--no-wait');
  return said ? flags.wait : process.stdout.isTTY;
}
