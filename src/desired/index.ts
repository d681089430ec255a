export { FileDesiredStore, type DesiredStoreOptions } from './file-desired-store.js';
