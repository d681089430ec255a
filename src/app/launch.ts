/**
 * The way from a typed command line into oclif, shared by bin/run.js and bin/dev.js. Owns nothing but the order: load the
 * commands' shapes, rewrite the line by them, run it, turn an error into one sentence and an exit code. Never returns
 * after an error.
 */
import { type Config, flush, run, settings } from '@oclif/core';
import { collectArgvFacts, rewriteArgv } from './argv.js';
import { complain, wrap } from './complaint.js';
import { loadConfig, pluginNotices } from './plugin-notices.js';

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
    const loaded = await loadConfig(root);
    ({ config } = loaded);
    const { knownCommands, booleanFlags, valueFlags } = collectArgvFacts(config.commands);
    words = rewriteArgv(typed, knownCommands, booleanFlags, valueFlags);
    const notices = await pluginNotices(loaded, words);
    warn(notices);
    await run([...words], config);
    // What was installed or linked is judged at once, and not first when it is needed.
    if (changesPlugins(words)) {
      const now = await pluginNotices(await loadConfig(root), words);
      warn(now.filter((notice) => !notices.includes(notice)));
    }
    await flush();
  } catch (error) {
    const { text, exitCode } = complain(error, factsOf(config, words));
    if (text !== undefined) process.stderr.write(`${text}\n`);
    await flush();
    process.exit(exitCode);
  }
}

const columns = (): number => Math.min(COLUMNS, process.stderr.isTTY ? process.stderr.columns : COLUMNS);

function warn(notices: readonly string[]): void {
  for (const notice of notices) process.stderr.write(`${wrap(`warning: ${notice}`, columns())}\n`);
}

const changesPlugins = ([command, second = '']: readonly string[]): boolean =>
  command === 'plugins' && ['install', 'add', 'link', 'update'].includes(second);

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
    columns: columns(),
    debug: (process.env['EITRI_DEBUG'] ?? '') !== '',
  };
}
