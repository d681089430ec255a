/**
 * Composes the backend from what the host hands it. The only place of this package that builds anything.
 */
import type { BackendHost, BackendPlugin, ProvisionerBackend } from '@eitri/core/contracts';
import { QemuConsoleSource } from './console.js';
import { GuestPaths } from './guest-files.js';
import { GuestProcesses } from './guest-process.js';
import { defaultAccelerators } from './installation.js';
import { DEFAULT_OPTIONS, QemuProvisioner, type QemuOptions } from './provisioner.js';
import { QmpClients } from './qmp.js';
import { UserNetworkPublisher } from './user-network.js';

/** The backend with its options open, for tests. */
export function createQemuBackend(host: BackendHost, options: Partial<QemuOptions> = {}): ProvisionerBackend {
  const all: QemuOptions = { accelerators: defaultAccelerators(host.facts.os), ...DEFAULT_OPTIONS, ...options };
  const qmp = new QmpClients(host);
  const processes = new GuestProcesses(host);
  const paths = new GuestPaths(host.vmPaths);
  return {
    provisioner: new QemuProvisioner(host, qmp, processes, paths, all),
    console: new QemuConsoleSource(host, paths),
    publisher:
      host.settings.guestNetwork === 'user' ? new UserNetworkPublisher(host, qmp, processes, paths) : undefined,
  };
}

/** Contract number 1, as in this package's `eitri` block. */
export const backend: BackendPlugin = {
  contract: 1,
  kind: 'provisioner',
  name: 'qemu',
  create: async (host, signal) => {
    signal.throwIfAborted();
    return Promise.resolve(createQemuBackend(host));
  },
};
