export * from './backoff.js';
export * from './detach.js';
export * from './errors.js';
export * from './keyed-mutex.js';
export * from './mac.js';
export * from './names.js';
export * from './sizes.js';
export * from './stable-json.js';
