import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { bundle } from '../../support/bundle.js';
import { tempFolder } from '../../support/temp.js';

it('a log file that can not be opened: the lines go to standard error, the first says why, and the process ends well', async () => {
  const file = join(tempFolder(), 'none', 'agent.log');
  const program = await bundle('host/log-nowhere.ts');
  const { status, stderr } = spawnSync(process.execPath, [program, file], { encoding: 'utf8' });
  const lines = stderr
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { event: string; err?: { system?: string } });
  expect(lines.map(({ event }) => event)).toEqual(['log.file.failed', 'said']);
  expect(lines[0]).toMatchObject({ file, err: { system: 'ENOENT' } });
  expect(status).toBe(0);
});
