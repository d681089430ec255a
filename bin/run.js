#!/usr/bin/env node
import './sigusr1.js';

// The rest is imported from here on only: what stands in an import statement is loaded, all of it, before any runs.
const { fileURLToPath } = await import('node:url');
// tsyringe throws unless reflect-metadata came first.
await import('reflect-metadata');
const { launch } = await import('../dist/app/launch.js');
await launch(fileURLToPath(import.meta.url), process.argv.slice(2));
