export * from './load.js';
export * from './plugin-catalog.js';
export * from './select.js';
export * from './select-network.js';
