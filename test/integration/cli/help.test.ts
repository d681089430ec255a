/** The command line's surface: what `--help` says of every command is held by golden files. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { AGENT_ROOT, runCli } from '../../support/cli.js';

const manifest = JSON.parse(readFileSync(join(AGENT_ROOT, 'oclif.manifest.json'), 'utf8')) as {
  commands: Record<string, { description?: string; examples?: string[]; hidden?: boolean }>;
};
/** Versions, of the agent, of Node and of the platform, are nothing that was agreed. */
const versionless = (text: string): string =>
  text.replace(/@eitri\/agent\/\S+ \S+ \S+/, '@eitri/agent/VERSION PLATFORM NODE');

const commands = Object.keys(manifest.commands).sort();

describe('help', () => {
  it.each(commands)('of %s is what was agreed, and fits 80 columns', async (id) => {
    const { code, stdout, stderr } = await runCli([...id.split(':'), '--help']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const line of stdout.split('\n')) expect(line.length, line).toBeLessThanOrEqual(80);
    await expect(stdout).toMatchFileSnapshot(`../../golden/cli/help-${id.replaceAll(':', '-')}.txt`);
  });

  it.each(commands)('of %s has examples and its exit codes', (id) => {
    const command = manifest.commands[id];
    expect(command?.examples?.length).toBeGreaterThan(0);
    expect(command?.description).toContain('Exit codes:');
  });

  it.each(['vm', 'network', 'local'])('of the topic %s lists its commands', async (topic) => {
    const { stdout } = await runCli([topic, '--help']);
    await expect(stdout).toMatchFileSnapshot(`../../golden/cli/help-${topic}.txt`);
  });

  it('of all lists the commands and topics', async () => {
    const { code, stdout } = await runCli(['--help']);
    expect(code).toBe(0);
    await expect(versionless(stdout)).toMatchFileSnapshot('../../golden/cli/help.txt');
  });
});

it('the version is one line', async () => {
  const { code, stdout } = await runCli(['--version']);
  expect(code).toBe(0);
  await expect(versionless(stdout)).toMatchFileSnapshot('../../golden/cli/version.txt');
});
