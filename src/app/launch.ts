/**
 * The way from a typed command line into oclif, shared by bin/run.js and bin/dev.js. Owns nothing but the order: load the
 * commands' shapes, rewrite the line by them, run it, turn an error into an exit code. Never returns after an error:
 * oclif's handler prints it and ends the process.
 */
import { Config, Errors, flush, run, settings } from '@oclif/core';
import { collectArgvFacts, rewriteArgv } from './argv.js';

const EXIT_USAGE = 64;

/** `root`: any file or folder of the package. */
export async function launch(root: string, typed: readonly string[]): Promise<void> {
  // What runs is always the built agent: oclif must not look for TypeScript, whatever NODE_ENV a caller left behind.
  settings.enableAutoTranspile = false;
  try {
    const config = await Config.load({ root });
    const { knownCommands, booleanFlags, valueFlags } = collectArgvFacts(config.commands);
    await run(rewriteArgv(typed, knownCommands, booleanFlags, valueFlags), config);
    await flush();
  } catch (error) {
    await Errors.handle(withUsageCode(error));
  }
}

/** oclif.exitCodes in package.json covers flags and arguments; for an unknown command oclif knows no code of its own. */
function withUsageCode(error: unknown): Error {
  const known = error instanceof Error ? error : new Error(String(error));
  if (!(known instanceof Errors.CLIError) || !/^command .* not found$/.test(known.message)) return known;
  return Object.assign(known, { oclif: { ...known.oclif, exit: EXIT_USAGE } });
}
