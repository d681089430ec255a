#!/usr/bin/env node
// The agent from a checkout: builds what changed, and the manifest with it (oclif would run the commands of yesterday).
import './sigusr1.js';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
for (const script of ['build', 'manifest']) {
  const { status } = spawnSync('npm', ['run', '--silent', script], { cwd: root, stdio: ['ignore', 2, 2] });
  if (status !== 0) process.exit(1);
}

await import('reflect-metadata');
const { launch } = await import('../dist/app/launch.js');
await launch(fileURLToPath(import.meta.url), process.argv.slice(2));
