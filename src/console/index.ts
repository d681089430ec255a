export * from './console-manager.js';
