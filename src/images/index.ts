export { guardedAgent, hostAddressJudge, type AddressJudge } from './address-guard.js';
export { ImageCache, type ImageCacheOptions } from './image-cache.js';
