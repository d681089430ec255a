export * from './admin-api.js';
export * from './console-frames.js';
export { issueLine, type FieldIssue } from './issues.js';
export * from './manifest.js';
export * from './vm-spec-schema.js';
