/** The command line's surface: what `--help` says of every command is held by golden files. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { AGENT_ROOT, runCli } from '../../support/cli.js';

const manifest = JSON.parse(readFileSync(join(AGENT_ROOT, 'oclif.manifest.json'), 'utf8')) as {
  commands: Record<string, { description?: string; examples?: string[]; hidden?: boolean }>;
};
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

  it('of a topic lists its commands', async () => {
    const { stdout } = await runCli(['vm', '--help']);
    await expect(stdout).toMatchFileSnapshot('../../golden/cli/help-vm.txt');
  });
});
