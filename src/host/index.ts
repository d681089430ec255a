export * from './atomic-file.js';
export * from './clock.js';
export * from './log.js';
export * from './runner.js';
