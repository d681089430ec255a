export { backend, createQemuBackend } from './backend.js';
export { QemuConsoleSource } from './console.js';
export { QemuProvisioner, type QemuOptions } from './provisioner.js';
export { UserNetworkPublisher } from './user-network.js';
