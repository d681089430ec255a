export * from './atomic-file.js';
export * from './clock.js';
export * from './host-info.js';
export * from './log.js';
export * from './pid-file.js';
export * from './process-table.js';
export * from './runner.js';
export * from './vmm-log.js';
