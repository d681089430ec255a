export * from './admin-client.js';
export { type ConsoleSession, type SessionEnd } from './console-session.js';
