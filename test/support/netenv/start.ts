/** Starting the guests' network in a test: a lab that goes with the test, and the contract's order. */
import { onTestFinished } from 'vitest';
import type { NetworkBackend, Reservation } from '@eitri/core/contracts';
import { calm } from '../quiet.js';
import { NetenvLab } from './lab.js';

export async function newLab(): Promise<NetenvLab> {
  const lab = await NetenvLab.make();
  onTestFinished(() => lab.remove());
  return lab;
}

export async function up(
  lab: NetenvLab,
  agent?: NetworkBackend,
  reservations: readonly Reservation[] = [],
): Promise<NetworkBackend> {
  const backend = agent ?? (await lab.agent());
  await backend.hostNetwork.verifyNetworks(calm());
  await backend.hostNetwork.checkUplink(calm());
  await backend.hostNetwork.ensureBridge(calm());
  await backend.hostNetwork.replayReservations(reservations, calm());
  await backend.hostNetwork.startDhcp(calm());
  return backend;
}
