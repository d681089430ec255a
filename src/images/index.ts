export { ImageCache, type ImageCacheOptions } from './image-cache.js';
