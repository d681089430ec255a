export * from './host-disk-service.js';
