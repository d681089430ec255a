export * from './control-file.js';
export * from './guest-cidr.js';
export * from './host-keys.js';
export * from './state-error.js';
export * from './state-lock.js';
export * from './state-paths.js';
export * from './state-schema.js';
export * from './state-store.js';
