export * from './load.js';
export * from './plugin-catalog.js';
export * from './plugin-memory.js';
export * from './plugin-roots.js';
export * from './probe.js';
export * from './select.js';
export * from './select-network.js';
