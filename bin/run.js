#!/usr/bin/env node
// tsyringe throws unless reflect-metadata came first.
import 'reflect-metadata';
import { fileURLToPath } from 'node:url';
import { launch } from '../dist/app/launch.js';

await launch(fileURLToPath(import.meta.url), process.argv.slice(2));
