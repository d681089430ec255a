export * from './admin-api.js';
export * from './console-frames.js';
