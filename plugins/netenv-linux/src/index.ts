export { backend, createNetenv } from './backend.js';
export { LinuxHostNetwork } from './linux-host-network.js';
export { LinuxNetwork } from './linux-network.js';
