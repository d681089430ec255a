export { FileDesiredStore } from './file-desired-store.js';
