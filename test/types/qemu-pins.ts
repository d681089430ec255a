/** QEMU's backend is its contracts, exactly: a dropped signal or a narrowed parameter fails the build here. */
import type { ConsoleSource, PortPublisher, Provisioner } from '@eitri/core/contracts';
import type { Expect, Pin } from '@eitri/conformance';
import type { QemuConsoleSource, QemuProvisioner, UserNetworkPublisher } from '@eitri/plugin-qemu';

export type QemuProvisionerPinned = Expect<Pin<Provisioner, QemuProvisioner>>;
export type QemuConsolePinned = Expect<Pin<ConsoleSource, QemuConsoleSource>>;
export type QemuPublisherPinned = Expect<Pin<PortPublisher, UserNetworkPublisher>>;
