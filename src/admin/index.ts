export * from './admin-server.js';
export * from './ports.js';
