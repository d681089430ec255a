import { describe, expect, it } from 'vitest';
import { collectArgvFacts, rewriteArgv, type CommandShape } from '../../../src/app/argv.js';

const option = (name: string) => ({ name, type: 'option' as const });
const boolean = (name: string, allowNo = false) => ({ name, type: 'boolean' as const, allowNo });
const flags = (...all: readonly { name: string; type: 'option' | 'boolean'; allowNo?: boolean }[]) =>
  Object.fromEntries(all.map((flag) => [flag.name, flag]));

const commands: readonly CommandShape[] = [
  { id: 'join', flags: flags(option('state-dir'), boolean('force'), option('adopt')) },
  { id: 'run', flags: flags(option('state-dir'), option('local'), boolean('teardown'), boolean('adopt', true)) },
  { id: 'vm:list', aliases: ['ls'], flags: flags(boolean('json'), option('sort')) },
];
const facts = collectArgvFacts(commands);
const rewrite = (line: string) =>
  rewriteArgv(
    line.split(' ').filter((word) => word !== ''),
    facts.knownCommands,
    facts.booleanFlags,
    facts.valueFlags,
  ).join(' ');

describe('rewriteArgv', () => {
  it.each([
    ['a bare call runs the agent', '', 'run'],
    ['flags alone run the agent', '--state-dir x', 'run --state-dir x'],
    ['a flag with = runs the agent', '--state-dir=x --teardown', 'run --state-dir=x --teardown'],
    ['flags before the command move behind it', '--state-dir x join BLOB', 'join BLOB --state-dir x'],
    ['a boolean flag before the command eats no word', '--force join BLOB', 'join BLOB --force'],
    ['leading flags stay in front of --', '--state-dir x join BLOB -- y', 'join BLOB --state-dir x -- y'],
    ['leading flags move behind a command of two words', '--state-dir x vm list web-1', 'vm list web-1 --state-dir x'],
    ['an alias is a command', '--json ls', 'ls --json'],
    [
      'a value that is named like a command stays a value',
      '--state-dir join --local y',
      'run --state-dir join --local y',
    ],
    ['a command line in oclif’s own order stays as it is', 'join BLOB --state-dir x', 'join BLOB --state-dir x'],
    ['one dash before a known long flag becomes two', '-state-dir x', 'run --state-dir x'],
    ['one dash with = becomes two', '-state-dir=x join BLOB', 'join BLOB --state-dir=x'],
    ['one dash behind a command becomes two', 'join BLOB -state-dir x', 'join BLOB --state-dir x'],
    ['one dash before a boolean flag becomes two', '-force join BLOB', 'join BLOB --force'],
    ['a bundle of short flags stays one', 'vm list -fq', 'vm list -fq'],
    ['a value that looks like a flag is left alone', 'join --state-dir -force', 'join --state-dir -force'],
    ['=true on a boolean flag is the flag', '--teardown=true', 'run --teardown'],
    ['=false on a boolean flag is its absence', '-teardown=false', 'run'],
    ['=false on a negatable flag negates it', '--adopt=false', 'run --no-adopt'],
    ['nonsense on a boolean flag is left for oclif to name', '--teardown=maybe', 'run --teardown=maybe'],
    ['an unknown command is left for oclif to name', '--state-dir x jion BLOB', 'jion BLOB --state-dir x'],
    ['an unknown flag does not hide the command behind it', '--sate-dir x join BLOB', 'join BLOB --sate-dir x'],
    ['an unknown flag right before a command eats no word', '--froce join BLOB', 'join BLOB --froce'],
    ['--help passes through', '--help', '--help'],
    ['-help becomes --help', '-help', '--help'],
    ['-h passes through', '-h', '-h'],
    ['help passes through', 'help vm list', 'help vm list'],
    ['--version passes through', '--version', '--version'],
    ['--help behind a flag asks for run’s help', '--state-dir x --help', 'run --state-dir x --help'],
    ['a lone dash is a word of its own', 'join -', 'join -'],
    ['what follows -- is left alone', 'join -- -state-dir x', 'join -- -state-dir x'],
  ])('%s', (_situation, typed, expected) => {
    expect(rewrite(typed)).toBe(expected);
  });

  it('changes nothing on a second pass', () => {
    for (const line of ['', '--state-dir x', '-state-dir x join BLOB', '--adopt=false', 'vm list -fq']) {
      expect(rewrite(rewrite(line))).toBe(rewrite(line));
    }
  });
});

describe('collectArgvFacts', () => {
  it('knows commands, aliases and topics by their first word', () => {
    expect([...facts.knownCommands].sort()).toEqual(['join', 'ls', 'run', 'vm']);
  });

  it('takes the kind that run gives a flag where commands differ', () => {
    expect(facts.booleanFlags.has('adopt')).toBe(true);
    expect(facts.valueFlags.has('adopt')).toBe(false);
  });
});
