export * from './console-manager.js';
export type { AttachOptions } from './audience.js';
export type { ConsoleViewer, ViewerEnd, ViewerEndReason } from './viewer.js';
