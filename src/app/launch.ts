/**
 * The way from a typed command line into oclif, shared by bin/run.js and bin/dev.js. Owns nothing but the order: load the
 * commands' shapes, rewrite the line by them, run it, turn an error into one sentence and an exit code. Never returns
 * after an error.
 */
import { Config, flush, run, settings } from '@oclif/core';
import { collectArgvFacts, rewriteArgv } from './argv.js';
import { complain } from './complaint.js';

const COLUMNS = 80;

/** `root`: any file or folder of the package. */
export async function launch(root: string, typed: readonly string[]): Promise<void> {
  // What runs is always the built agent: oclif must not look for TypeScript, whatever NODE_ENV a caller left behind.
  settings.enableAutoTranspile = false;
  // `vm logs --follow | head`: who reads no more has seen enough.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
  });
  let config: Config | undefined;
  let words: readonly string[] = typed;
  try {
    config = await Config.load({ root });
    const { knownCommands, booleanFlags, valueFlags } = collectArgvFacts(config.commands);
    words = rewriteArgv(typed, knownCommands, booleanFlags, valueFlags);
    await run([...words], config);
    await flush();
  } catch (error) {
    const { text, exitCode } = complain(error, factsOf(config, words));
    if (text !== undefined) process.stderr.write(`${text}\n`);
    await flush();
    process.exit(exitCode);
  }
}

function factsOf(config: Config | undefined, words: readonly string[]): Parameters<typeof complain>[1] {
  const commands = config?.commands.filter(({ hidden }) => !hidden) ?? [];
  const named = commands.map((command) => ({ command, name: command.id.replaceAll(':', ' ') }));
  const line = words.filter((word) => !word.startsWith('-')).join(' ');
  const [typed] = named
    .filter(({ name }) => line === name || line.startsWith(`${name} `))
    .sort((a, b) => b.name.length - a.name.length);
  return {
    bin: config?.bin ?? 'eitri-agent',
    commands: named.map(({ name }) => name),
    command: typed?.name,
    flags: Object.keys(typed?.command.flags ?? {}),
    columns: Math.min(COLUMNS, process.stderr.isTTY ? process.stderr.columns : COLUMNS),
    debug: (process.env['EITRI_DEBUG'] ?? '') !== '',
  };
}
