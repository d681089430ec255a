/** What tests of a backend are made of: suites, pins, fakes, a clock that stands still. */
export * from './call-log.js';
export * from './fake-host.js';
export * from './fake-network.js';
export * from './fake-provisioner.js';
export * from './fake-pump-hooks.js';
export * from './fake-supervisor.js';
export * from './manual-clock.js';
export * from './memory-desired-store.js';
export * from './memory-disks.js';
export * from './memory-images.js';
export * from './memory-seeds.js';
export * from './memory-state-store.js';
export type * from './pin.js';
export * from './samples.js';
export * from './suite.js';
