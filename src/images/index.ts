export { ImageCache } from './image-cache.js';
