/**
 * Gives a lease back in the name of a guest that is gone: dnsmasq refuses an address that is still leased to another MAC,
 * and takes no other word for it than the client's own DHCPRELEASE.
 *
 * The packet goes from this host to its own address on the bridge. The kernel delivers it as if it had come in by that
 * device, which is what a server bound to the device listens on; so no raw socket is needed.
 */
import { createSocket } from 'node:dgram';
import { parseIpv4 } from './cidr.js';

export const DHCP_SERVER_PORT = 67;
/** The least that servers take (RFC 1542). */
const PACKET_BYTES = 300;
const OPTIONS_AT = 236;
const MAGIC = [99, 130, 83, 99];
const MESSAGE_TYPE_RELEASE = [53, 1, 7];
const SERVER_ID = 54;
const END = 255;

/** Sends one datagram to a UDP port. */
export type SendDatagram = (packet: Uint8Array, address: string, port: number) => Promise<void>;

export function releasePacket(of: {
  readonly mac: string;
  readonly address: string;
  readonly server: string;
}): Uint8Array {
  const packet = Buffer.alloc(PACKET_BYTES);
  // BOOTREQUEST, Ethernet, 6 bytes of hardware address. The transaction has no answer, so its number stays 0.
  packet.set([1, 1, 6], 0);
  packet.writeUInt32BE(parseIpv4(of.address) ?? 0, 12);
  packet.set(Buffer.from(of.mac.replaceAll(':', ''), 'hex'), 28);
  const server = Buffer.alloc(4);
  server.writeUInt32BE(parseIpv4(of.server) ?? 0);
  packet.set([...MAGIC, ...MESSAGE_TYPE_RELEASE, SERVER_ID, 4, ...server, END], OPTIONS_AT);
  return packet;
}

export const sendDatagram: SendDatagram = async (packet, address, port) => {
  const socket = createSocket('udp4');
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject);
      socket.send(packet, port, address, (error) => {
        if (error === null) resolve();
        else reject(error);
      });
    });
  } finally {
    socket.close();
  }
};
