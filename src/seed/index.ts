export * from './host-key-store.js';
export * from './nocloud-seed-source.js';
export * from './user-data.js';
