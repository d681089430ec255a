/**
 * The fields of a manifest, one small schema each: from what a person writes to the units of the wire.
 *
 * Pure. Every refusal says what was found and what to write instead; sizes are binary, rates of networks decimal.
 */
import type { Exposure, HardwareSpec, ImageDigest, ImageRef, LimitSpec, VmId } from '@eitri/core/contracts';
import { GIB, ID_RULE, isNetworkName, isVmId, MAX_DISK_GIB, MIB, parseSize } from '@eitri/core/kit';
import { isIP } from 'node:net';
import { z } from 'zod';
import { atMost, distinct, leaf, list, meantName, refuse, shape, show, type Refusal } from './issues.js';

export const MIN_MEMORY_MIB = 64;
/** 16 TiB: beyond what a host has, and still far from where numbers lose precision. */
export const MAX_MEMORY_MIB = 2 ** 24;
export const MAX_CPUS = 256;
/** /dev/vda is the root disk and /dev/vdb the seed: c to z are left. */
export const MAX_VOLUMES = 24;
const MAX_EXPOSURES = 256;
const MAX_LABELS = 64;
const MAX_PATH_CHARS = 1024;
const MAX_KEYS = 64;
/** RSA of 16384 bits has 2800, and certificates twice that. */
const MAX_KEY_CHARS = 16 * 1024;
const MAX_USER_DATA_CHARS = 256 * 1024;
/** DHCP's: a guest's published port there would answer, or silence, the host's own addresses. */
const RESERVED_HOST_PORTS: readonly number[] = [67, 68];

const SIZE_WORD = /^(\d+(?:\.\d+)?)\s?([kmgt])(?:b|i|ib)?$/i;
// Control characters in a name would end up in logs, command lines and seeds.
const CONTROL = /\p{Cc}/u;

export function integer(min: number, max: number): z.ZodType<number> {
  const range = `${min.toString()}..${max.toString()}`;
  return leaf(`a whole number in ${range}`, (value) => {
    if (typeof value !== 'number') return refuse(`${show(value)} is not a number: write a whole number in ${range}`);
    if (!Number.isInteger(value)) return refuse(`${show(value)} is not whole: write a whole number in ${range}`);
    return value >= min && value <= max ? value : refuse(`${show(value)} is not in ${range}`);
  });
}

export function oneOf<T extends string>(first: T, ...others: readonly T[]): z.ZodType<T> {
  const words: readonly T[] = [first, ...others];
  const need = others.length === 0 ? first : `${words.slice(0, -1).join(', ')} or ${others.at(-1) ?? first}`;
  return leaf(need, (value) => {
    const word = words.find((known) => known === value);
    if (word !== undefined) return word;
    const meant = typeof value === 'string' ? meantName(value, words) : undefined;
    return refuse(`${show(value)} is not ${need}${meant === undefined ? '' : `: did you mean ${meant}?`}`);
  });
}

const text = (need: string, read: (value: string) => string | Refusal): z.ZodType<string> =>
  leaf(need, (value) =>
    typeof value === 'string' ? read(value) : refuse(`${show(value)} is not a text: write ${need}`),
  );

const bool = leaf<boolean>('true or false', (value) =>
  typeof value === 'boolean' ? value : refuse(`${show(value)} is not true or false`),
);

const ID_NEED = `a name: ${ID_RULE}`;
const idText = (value: unknown): VmId | Refusal =>
  typeof value === 'string' && isVmId(value) ? value : refuse(`${show(value)} is not a name: write ${ID_RULE}`);
export const vmName = leaf<VmId>(ID_NEED, idText);
const volumeName = leaf<string>(ID_NEED, idText);

const networkName = leaf<string>('the name of a network of this host', (value) => {
  if (value === 'nat') return refuse('"nat" is every VM’s first network already: remove it');
  return typeof value === 'string' && isNetworkName(value)
    ? value
    : refuse(`${show(value)} is not a network’s name: write 1 to 32 of a-z, 0-9 and hyphen, no hyphen at an end`);
});

/** What somebody most likely meant by `2GB`, `2Gi`, `2gib` or `1.5GiB`. */
function meantSize(word: string): string | undefined {
  const match = SIZE_WORD.exec(word.trim());
  const [, digits, unit] = match ?? [];
  if (digits === undefined || unit === undefined) return undefined;
  if (/^\d+$/.test(digits)) return `${digits}${unit.toUpperCase()}iB`;
  const smaller = { m: 'KiB', g: 'MiB', t: 'GiB' }[unit.toLowerCase()];
  const count = Number(digits) * 1024;
  return smaller !== undefined && Number.isInteger(count) ? `${count.toString()}${smaller}` : undefined;
}

/**
 * Bytes of a size; a plain number counts in `plainUnit`, or is refused where that would be a guess. What was meant is
 * guessed only among multiples of `whole`.
 */
function bytes(value: unknown, plainUnit: number | undefined, need: string, whole = 1): number | Refusal {
  if (typeof value !== 'string' && typeof value !== 'number')
    return refuse(`${show(value)} is not a size: write ${need}`);
  const word = String(value).trim();
  const plain = /^\d+$/.test(word);
  const size = plain && plainUnit === undefined ? undefined : parseSize(word, plainUnit ?? 1);
  if (size !== undefined) return size;
  const guess = meantSize(word);
  const meant = guess !== undefined && (parseSize(guess, 1) ?? 1) % whole === 0 ? guess : undefined;
  return refuse(`${show(value)} is not a size: ${meant === undefined ? `write ${need}` : `did you mean ${meant}?`}`);
}

const MEMORY_NEED = 'a number of MiB, or one with MiB or GiB, like 2GiB';
export const memoryMib = leaf<number>(MEMORY_NEED, (value) => {
  const size = bytes(value, MIB, MEMORY_NEED, MIB);
  if (typeof size !== 'number') return size;
  if (size % MIB !== 0) return refuse(`${show(value)} is not a whole number of MiB`);
  const mib = size / MIB;
  if (mib < MIN_MEMORY_MIB) return refuse(`${show(value)} is less than 64MiB, the least that a guest boots with`);
  return mib <= MAX_MEMORY_MIB ? mib : refuse(`${show(value)} is more than 16TiB`);
});

const DISK_NEED = 'a whole number of GiB, like 20GiB';
export const diskGib = leaf<number>(DISK_NEED, (value) => {
  const size = bytes(value, GIB, DISK_NEED, GIB);
  if (typeof size !== 'number') return size;
  if (size % GIB !== 0) return refuse(`${show(value)} is not a whole number of GiB`);
  const gib = size / GIB;
  return gib >= 1 && gib <= MAX_DISK_GIB ? gib : refuse(`${show(value)} is not in 1GiB..1048576GiB`);
});

const digest = (algorithm: ImageDigest['algorithm'], digits: number): z.ZodType<ImageDigest> =>
  leaf(`${digits.toString()} hex digits`, (value) => {
    const hex = typeof value === 'string' ? value.toLowerCase() : '';
    if (/^[0-9a-f]*$/.test(hex) && hex.length === digits) return { algorithm, hex };
    const why = hex.startsWith(`${algorithm}:`)
      ? `leave ${algorithm}: away`
      : /^[0-9a-f]+$/.test(hex)
        ? `it has ${hex.length.toString()} hex digits, ${algorithm} has ${digits.toString()}`
        : `write ${digits.toString()} hex digits`;
    // A number loses digits before we see it: YAML reads an unquoted row of digits as one.
    return refuse(
      typeof value === 'number'
        ? `${show(value)} was read as a number: quote it`
        : `${show(value)} is not a digest: ${why}`,
    );
  });

const imageUrl = text('https://…, http://… or file:///…', (value) => {
  if (!URL.canParse(value)) {
    const hint = /^\/\S{0,99}$/.test(value)
      ? `did you mean file://${value}?`
      : 'write https://…, http://… or file:///…';
    return refuse(`${show(value)} is not a URL: ${hint}`);
  }
  const url = new URL(value);
  if (url.username !== '' || url.password !== '') {
    return refuse('a URL with a password in it would be shown and logged: give credentials by a file of the host');
  }
  if (url.protocol === 'file:') {
    return url.hostname === '' && url.pathname !== '/' && !url.pathname.endsWith('/')
      ? url.href
      : refuse(`${show(value)} names no file of this host: write file:///path/to/image`);
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    return refuse(`${show(value)} can’t be fetched: write https://…, http://… or file:///…`);
  }
  return url.hash === '' ? url.href : refuse(`${show(value)} has a #fragment, which no server sees: remove it`);
});

const IMAGE_NEED = 'a name of the image catalog, or a map with url';
const CATALOG_NAME = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;
const imageMap = shape({
  url: imageUrl,
  sha256: digest('sha256', 64).optional(),
  sha512: digest('sha512', 128).optional(),
  format: oneOf('raw', 'qcow2').optional(),
}).transform((map, ctx): ImageRef => {
  if (map.sha256 !== undefined && map.sha512 !== undefined) {
    ctx.issues.push({ code: 'custom', message: 'sha256 and sha512 both: keep one', input: map });
    return z.NEVER;
  }
  const hash = map.sha256 ?? map.sha512;
  return {
    kind: 'url',
    url: map.url,
    ...(hash !== undefined && { digest: hash }),
    ...(map.format !== undefined && { format: map.format }),
  };
});
const imageName = leaf<ImageRef>(IMAGE_NEED, (value) => {
  if (typeof value !== 'string') return refuse(`${show(value)} is not an image: write ${IMAGE_NEED}`);
  if (CATALOG_NAME.test(value)) return { kind: 'catalog', name: value };
  const url = value.startsWith('/') ? `file://${value}` : value;
  return refuse(
    URL.canParse(url)
      ? `${show(value)} is not a name of the catalog: write image: {url: "${url.slice(0, 60)}"}`
      : `${show(value)} is not an image: write ${IMAGE_NEED}`,
  );
});
export const image: z.ZodType<ImageRef> = z.unknown().transform((value, ctx): ImageRef => {
  const map = typeof value === 'object' && value !== null && !Array.isArray(value);
  const result = (map ? imageMap : imageName).safeParse(value);
  if (result.success) return result.data;
  for (const issue of result.error.issues) ctx.issues.push({ ...issue, input: value } as z.core.$ZodRawIssue);
  return z.NEVER;
});

export const volumes = list(
  'volumes',
  MAX_VOLUMES,
  shape({ name: volumeName, size: diskGib }).transform(({ name, size }) => ({ name, sizeGib: size })),
).superRefine(
  distinct(
    (volume) => volume.name,
    (volume, first) => `${show(volume.name)} is spec.volumes[${first.toString()}] already`,
    'name',
  ),
);

export const networks = list('networks', 1, shape({ name: networkName }));

const hostAddress = leaf<string>('an IP address of this host, or 0.0.0.0 for all', (value) =>
  typeof value === 'string' && isIP(value) !== 0 && !value.includes('%')
    ? value
    : refuse(`${show(value)} is not an IP address: write one of this host, or 0.0.0.0 for all`),
);
const hostPort = leaf<number>('a port in 1..65535', (value) => {
  if (typeof value === 'number' && RESERVED_HOST_PORTS.includes(value)) {
    return refuse(`${show(value)} is reserved for DHCP: write another`);
  }
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 65535
    ? value
    : refuse(`${show(value)} is not a port in 1..65535`);
});
const guestPort = integer(1, 65535);
const exposure: z.ZodType<Exposure> = shape({
  hostAddress: hostAddress.optional(),
  hostPort,
  guestPort,
  protocol: oneOf('tcp', 'udp').optional(),
}).transform((map) => ({
  hostAddress: map.hostAddress ?? '0.0.0.0',
  hostPort: map.hostPort,
  guestPort: map.guestPort,
  protocol: map.protocol ?? 'tcp',
}));

/** Whether two listeners would get in each other's way: `::` listens for IPv4 too. */
function clash(a: Exposure, b: Exposure): boolean {
  if (a.hostPort !== b.hostPort || a.protocol !== b.protocol) return false;
  const all = (one: Exposure, other: Exposure): boolean =>
    one.hostAddress === '::' || (one.hostAddress === '0.0.0.0' && isIP(other.hostAddress) === 4);
  return a.hostAddress === b.hostAddress || all(a, b) || all(b, a);
}
export const exposures = list('exposures', MAX_EXPOSURES, exposure).superRefine((items, ctx) => {
  items.forEach((item, index) => {
    const first = items.findIndex((other, at) => at < index && clash(other, item));
    if (first < 0) return;
    const port = `${item.hostPort.toString()}/${item.protocol}`;
    ctx.addIssue({
      code: 'custom',
      path: [index, 'hostPort'],
      message: `${port} is published by spec.exposures[${first.toString()}] already: write another port or address`,
    });
  });
});

const KEY_NEED = 'a public key’s line, like "ssh-ed25519 AAAA… me@example"';
const KEY_TYPES = [
  'ssh-ed25519', 'ssh-rsa', 'ecdsa-sha2-nistp256', 'ecdsa-sha2-nistp384', 'ecdsa-sha2-nistp521',
  'sk-ssh-ed25519@openssh.com', 'sk-ecdsa-sha2-nistp256@openssh.com',
]; // prettier-ignore
/** Options may stand in front, as in authorized_keys. */
const KEY_LINE = new RegExp(
  `^(?:[^\\n]* )?(${KEY_TYPES.map((t) => t.replaceAll('.', '\\.')).join('|')}) ([A-Za-z0-9+/]+={0,2})(?: .*)?$`,
);
export const sshKeys = list(
  'keys',
  MAX_KEYS,
  text(KEY_NEED, (value) => {
    if (value.includes('PRIVATE KEY'))
      return refuse('this is a private key: take it out of here, and write the line of its .pub file');
    if (value.length > MAX_KEY_CHARS) return refuse('is longer than any key: write the line of one .pub file');
    const line = value.trim();
    if (CONTROL.test(line)) return refuse(`${show(line)} is more than one line: write each key as an item of its own`);
    const [, type, blob] = KEY_LINE.exec(line) ?? [];
    if (type === undefined || blob === undefined) return refuse(`${show(line)} is not a key: write ${KEY_NEED}`);
    // The blob repeats its type, with its length before it: a key that was cut or pasted wrong shows here, not at login.
    const raw = Buffer.from(blob, 'base64');
    const whole = raw.length > type.length + 8 && raw.subarray(4, 4 + type.length).toString('latin1') === type;
    return whole ? line : refuse(`${show(line)} is cut or garbled: copy the whole line of the .pub file`);
  }),
);

const labelMap = z
  .record(
    z.string(),
    leaf('a text', (value) => {
      if (typeof value !== 'string') return refuse(`${show(value)} is not a text: quote it`);
      return value.length <= 255 && !CONTROL.test(value)
        ? value
        : refuse(`${show(value)} is longer than 255 characters or has control characters`);
    }),
    { error: (issue) => `${show(issue.input)} is not a map of labels, like {role: web}` },
  )
  .superRefine((map, ctx) => {
    for (const key of Object.keys(map)) {
      if (key === '' || key.length > 63 || CONTROL.test(key)) {
        ctx.addIssue({ code: 'custom', path: [key], message: 'a label’s name has 1 to 63 characters' });
      }
    }
  });
export const labels = atMost('labels', MAX_LABELS, labelMap);

const HOSTNAME =
  /^(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$/;
export const hostname = text('a host name', (value) =>
  HOSTNAME.test(value)
    ? value
    : refuse(`${show(value)} is not a host name: write a-z, 0-9 and hyphen, with dots between labels`),
);

// Never shown: it holds passwords more often than not.
export const userData = leaf<string>('cloud-init user-data', (value) => {
  if (typeof value !== 'string') return refuse('is not a text: put a | after userData: and indent its lines');
  if (value.trim() === '') return refuse('is empty: write cloud-init user-data, or remove the line');
  return value.length <= MAX_USER_DATA_CHARS ? value : refuse('is longer than 256 KiB: let the guest fetch the rest');
});
export const userDataFile = text('a file’s path', (value) =>
  value !== '' && value.length <= MAX_PATH_CHARS && !CONTROL.test(value)
    ? value
    : refuse(`${show(value)} is not a file’s path`),
);

const HUGEPAGES = ['2MiB', '1GiB'] as const;
const hugepages = leaf<(typeof HUGEPAGES)[number]>('2MiB or 1GiB', (value) => {
  const size = bytes(value, undefined, '2MiB or 1GiB');
  const known = HUGEPAGES.find((name) => parseSize(name, 1) === size);
  return known ?? refuse(`${show(value)} is not 2MiB or 1GiB`);
});
const processors = list('host processors', 4096, integer(0, 4095)).superRefine((items, ctx) => {
  if (items.length === 0)
    ctx.addIssue({ code: 'custom', message: 'is empty: list host processors, or remove the line' });
});
const affinityMap = z
  .record(z.string(), processors, { error: (issue) => `${show(issue.input)} is not a map of vCPUs, like {0: [2, 3]}` })
  .superRefine((map, ctx) => {
    for (const key of Object.keys(map)) {
      if (!/^(0|[1-9]\d{0,2})$/.test(key))
        ctx.addIssue({ code: 'custom', path: [key], message: 'is not a vCPU: count from 0' });
    }
  });
const cpuAffinity = atMost('vCPUs', MAX_CPUS, affinityMap);
const smbiosSerial = text('a serial number', (value) =>
  /^[A-Za-z0-9][A-Za-z0-9 ._:-]{0,63}$/.test(value)
    ? value
    : refuse(`${show(value)} is not a serial number: write 1 to 64 of letters, digits, . _ : - and blanks`),
);

const present = <T extends object>(map: T): T =>
  Object.fromEntries(Object.entries(map).filter(([, value]) => value !== undefined)) as T;

export const hardware: z.ZodType<HardwareSpec> = shape({
  hugepages: hugepages.exactOptional(),
  sharedMemory: bool.exactOptional(),
  cpuAffinity: cpuAffinity.exactOptional(),
  tpm: bool.exactOptional(),
  vsock: bool.exactOptional(),
  smbiosSerial: smbiosSerial.exactOptional(),
}).transform(present);

const RATE_NEED = 'a size a second, like 100MiB';
const byteRate = leaf<number>(RATE_NEED, (value) => {
  const size = bytes(value, undefined, RATE_NEED);
  return size === 0 ? refuse('0 would stop it: remove the line for no limit') : size;
});
const BITS: Readonly<Record<string, number>> = { bit: 1, kbit: 1e3, mbit: 1e6, gbit: 1e9 };
const BIT_NEED = 'bits a second with Kbit, Mbit or Gbit, like 1000Mbit';
const bitRate = leaf<number>(BIT_NEED, (value) => {
  const [, digits, unit] = /^(\d{1,9})\s?([kmg]?bit)$/i.exec(typeof value === 'string' ? value.trim() : '') ?? [];
  const bits = Number(digits) * (BITS[unit?.toLowerCase() ?? ''] ?? Number.NaN);
  if (!Number.isSafeInteger(bits)) return refuse(`${show(value)} is not a rate: write ${BIT_NEED}`);
  return bits > 0 ? bits : refuse('0 would stop it: remove the line for no limit');
});
export const limits: z.ZodType<LimitSpec> = shape({
  diskIops: integer(1, 1_000_000_000).optional(),
  diskBandwidth: byteRate.optional(),
  netBandwidth: bitRate.optional(),
}).transform((map) => ({
  ...(map.diskIops !== undefined && { diskIops: map.diskIops }),
  ...(map.diskBandwidth !== undefined && { diskBandwidthBytes: map.diskBandwidth }),
  ...(map.netBandwidth !== undefined && { netBandwidthBits: map.netBandwidth }),
}));
