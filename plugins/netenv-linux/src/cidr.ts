/**
 * IPv4 addresses and subnets as numbers. Pure; unsigned arithmetic throughout, because JavaScript's shifts and masks give
 * signed 32-bit numbers, in which 192.168.0.0 is below 10.0.0.0.
 *
 * Held by test/unit/netenv-linux/cidr.test.ts.
 */

/** A subnet: its network address, with no host bits set, and the length of its prefix. */
export interface Cidr {
  readonly network: number;
  readonly prefix: number;
}

/** Addresses in a subnet of this prefix, network and broadcast address included. */
export const sizeOf = (prefix: number): number => 2 ** (32 - prefix);

/** Undefined: not four numbers of 0 to 255. A leading zero is refused: some tools read it as octal. */
export function parseIpv4(text: string): number | undefined {
  const parts = text.split('.');
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part))) return undefined;
  let value = 0;
  for (const part of parts) {
    if (Number(part) > 255) return undefined;
    value = value * 256 + Number(part);
  }
  return value;
}

export const formatIpv4 = (value: number): string =>
  [2 ** 24, 2 ** 16, 2 ** 8, 1].map((unit) => (Math.floor(value / unit) % 256).toString()).join('.');

/** `10.77.1.0/24`, or a bare address as the subnet of itself. Host bits are cut off. Undefined: neither. */
export function parseCidr(text: string): Cidr | undefined {
  const slash = text.indexOf('/');
  const address = parseIpv4(slash === -1 ? text : text.slice(0, slash));
  const digits = slash === -1 ? '32' : text.slice(slash + 1);
  if (address === undefined || !/^(0|[1-9]\d?)$/.test(digits) || Number(digits) > 32) return undefined;
  const prefix = Number(digits);
  return { network: address - (address % sizeOf(prefix)), prefix };
}

export const formatCidr = ({ network, prefix }: Cidr): string => `${formatIpv4(network)}/${prefix.toString()}`;

export const contains = (cidr: Cidr, address: number): boolean =>
  address >= cidr.network && address < cidr.network + sizeOf(cidr.prefix);

/** Of two subnets that have an address in common, one holds the other. */
export const overlaps = (a: Cidr, b: Cidr): boolean => contains(a, b.network) || contains(b, a.network);

export const netmaskOf = ({ prefix }: Cidr): string => formatIpv4(2 ** 32 - sizeOf(prefix));

/** The host's own address in the guests' subnet: the first that is not the network's. */
export const gatewayOf = ({ network }: Cidr): string => formatIpv4(network + 1);

/** How many guests have room: all addresses but the network's, the gateway's, and the broadcast's. */
export const guestRoom = ({ prefix }: Cidr): number => sizeOf(prefix) - 3;

/** The n-th address for guests, from 0. */
export const guestAddress = ({ network }: Cidr, n: number): string => formatIpv4(network + 2 + n);

/** Whether an address is one that a guest of this subnet can have. */
export function isGuestAddress(cidr: Cidr, text: string): boolean {
  const address = parseIpv4(text);
  if (address === undefined) return false;
  const n = address - cidr.network - 2;
  return n >= 0 && n < guestRoom(cidr);
}
