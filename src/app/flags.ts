/**
 * Every setting of the agent: one table from which the flags, the environment variables, the configuration file and
 * `--help` are made. Each name means the same on every platform; what a platform does not use it accepts and ignores.
 */
import { isIPv4 } from 'node:net';
import { Flags } from '@oclif/core';
import type { Interfaces } from '@oclif/core';
import {
  EXIT,
  exitError,
  formatDuration,
  isNegativeDuration,
  isNetworkName,
  MIB,
  parseDuration,
  parseSize,
} from '@eitri/core/kit';

interface Setting<T> {
  readonly description: string;
  readonly value: string;
  readonly fallback: T;
  /** The default as `--help` shows it; absent: none is shown. */
  readonly shown?: string;
  readonly parse: (text: string, flag: string) => T;
  /** May be given several times. */
  readonly multiple?: boolean;
  /** A switch: takes no value. */
  readonly boolean?: boolean;
}

const refuse = (flag: string, want: string, got: string): Error =>
  exitError(EXIT.usage, `${flag}: want ${want}, got "${got}"`);

const text = (description: string, value: string, fallback: string, shown = fallback): Setting<string> => ({
  description,
  value,
  fallback,
  ...(shown === '' ? {} : { shown }),
  parse: (given) => given,
});

const optional = (description: string, value: string): Setting<string | undefined> => ({
  description,
  value,
  fallback: undefined,
  parse: (given, flag) => {
    if (given === '') throw refuse(flag, value, given);
    return given;
  },
});

const duration = (description: string, fallback: number): Setting<number> => ({
  description,
  value: 'DURATION',
  fallback,
  shown: formatDuration(fallback),
  parse: durationOf,
});

/** Milliseconds of a flag's duration. */
export function durationOf(given: string, flag: string): number {
  const ms = parseDuration(given);
  if (ms !== undefined) return ms;
  if (isNegativeDuration(given)) throw exitError(EXIT.usage, `${flag}: want a duration of 0 or more, got "${given}"`);
  throw refuse(flag, 'a duration such as 90s, 5m or 1h30m', given);
}

const cidr = (description: string): Setting<string> => ({
  ...text(description, 'CIDR', ''),
  parse: (given, flag) => {
    const [address = '', bits = '', ...more] = given.split('/');
    const fits = isIPv4(address) && /^\d{1,2}$/.test(bits) && Number(bits) <= 32 && more.length === 0;
    if (given !== '' && !fits) throw refuse(flag, 'an IPv4 subnet such as 10.77.1.0/24, or nothing', given);
    return given;
  },
});

const httpsUrl = (description: string, fallback: string): Setting<string> => ({
  ...text(description, 'URL', fallback),
  parse: (given, flag) => {
    if (given !== '' && !(URL.canParse(given) && new URL(given).protocol === 'https:')) {
      throw refuse(flag, 'an https:// URL, or nothing', given);
    }
    return given;
  },
});

const cap = (description: string): Setting<number> => ({
  description,
  value: 'N',
  fallback: 0,
  shown: '0, unlimited',
  parse: (given, flag) => {
    const number = Number(given);
    if (!/^-?\d+$/.test(given) || !Number.isSafeInteger(number)) throw refuse(flag, 'a whole number', given);
    if (number < 0) {
      throw exitError(EXIT.usage, `resource cap ${flag} must be >= 0 (0 = unlimited), got ${given}`);
    }
    return number;
  },
});

const whole = (description: string, fallback: number, allowNegative = false): Setting<number> => ({
  description,
  value: 'N',
  fallback,
  shown: String(fallback),
  parse: (given, flag) => {
    const number = Number(given);
    if (!/^-?\d+$/.test(given) || !Number.isSafeInteger(number) || (number < 0 && !allowNegative)) {
      throw refuse(flag, allowNegative ? 'a whole number' : 'a whole number, 0 or more', given);
    }
    return number;
  },
});

const toggle = (description: string): Setting<boolean> => ({
  description,
  value: '',
  fallback: false,
  boolean: true,
  parse: (given, flag) => {
    if (given !== 'true' && given !== 'false') throw refuse(flag, 'true or false', given);
    return given === 'true';
  },
});

const NETWORK_RULE = '1-32 of [a-z0-9-], no leading or trailing hyphen, "nat" is reserved';

/** `name=bridge`, checked. */
function hostNetwork(given: string, flag: string): readonly [string, string] {
  const equals = given.indexOf('=');
  const name = given.slice(0, Math.max(0, equals));
  const bridge = given.slice(equals + 1);
  if (equals === -1 || bridge === '') throw refuse(flag, 'name=bridge', given);
  if (!isNetworkName(name)) throw exitError(EXIT.usage, `${flag}: invalid network name "${name}" (${NETWORK_RULE})`);
  return [name, bridge];
}

/** Settings of where things stand: every command that speaks to an agent takes them too. */
export const PLACE_SETTINGS = {
  'state-dir': optional('where records, disks and images are kept (default: by platform and user)', 'DIR'),
  'run-dir': optional('where sockets are made; keep it short (default: by platform and user)', 'DIR'),
} as const;

export const AGENT_SETTINGS = {
  ...PLACE_SETTINGS,
  local: optional('take the VMs from a folder of manifests instead of a control plane', 'DIR'),
  backend: optional('the hypervisor backend, where several qualify; bound to the state at the first run', 'NAME'),
  'guest-network': {
    description:
      'how guests reach the network: "user" gives each guest a user-mode network of its own, without root; a name asks for that network plugin (default: the network plugin that is installed)',
    value: 'user|NAME',
    fallback: undefined as string | undefined,
    parse: (given, flag) => {
      if (!/^[a-z0-9][a-z0-9-]{0,31}$/.test(given)) throw refuse(flag, '"user" or the name of a network plugin', given);
      return given;
    },
  } satisfies Setting<string | undefined>,
  'ch-bin': text(
    'cloud-hypervisor: a path, or a name on PATH; used by the cloudhv backend only',
    'PATH',
    'cloud-hypervisor',
  ),
  firmware: text('UEFI firmware; used by the cloudhv backend only', 'PATH', '/usr/share/eitri/CLOUDHV.fd'),
  'vfkit-bin': text('vfkit: a path, or a name on PATH; used by the vfkit backend only', 'PATH', 'vfkit'),
  'qemu-bin': optional(
    'QEMU: a path, or a name on PATH; used by the qemu backend only (default: qemu-system-<architecture of this host>)',
    'PATH',
  ),
  'bridge-cidr': cidr("the guests' subnet; used by network plugins only, and not with --guest-network user"),
  'bootstrap-url': httpsUrl(
    'release manifest of cloud-hypervisor and its firmware; used by the cloudhv backend only; empty disables it',
    'https://eitri.sh/dl/latest/manifest.json',
  ),
  'tombstone-grace': duration('how long a deleted VM is kept, shut down, before it is destroyed', 5 * 60_000),
  'vanish-grace': duration(
    'how long a VM that vanished without being deleted is left alone before it is destroyed; 0: for ever',
    60 * 60_000,
  ),
  'vm-timeout': duration(
    "bound on one pass over one VM; 0 disables it; keep it above an image download's 10m",
    15 * 60_000,
  ),
  'image-dir': optional('folder from which manifests may take images by name or file: URL', 'DIR'),
  'image-cache-max-gb': whole('evict the least recently used images beyond this size; 0: never', 20, true),
  'max-concurrent-creates': whole('how many VMs may be in the disk-heavy part of their creation at once; 0: any', 4),
  'max-vcpus': cap('cap on the vCPUs that all VMs of this host have together'),
  'max-mem-mb': cap('cap on the memory (MiB) that all VMs have together'),
  'max-disk-gb': cap('cap on the disk (GiB) that all VMs have together'),
  'memory-reserve': {
    description:
      'memory of this host that no VM gets: the VMs have the rest together, or --max-mem-mb, if that is less',
    value: 'MIB|SIZE',
    fallback: 0,
    shown: '0, none',
    parse: (given, flag) => {
      const bytes = parseSize(given, MIB);
      if (bytes === undefined) throw refuse(flag, 'MiB as a whole number, or a size such as 2GiB', given);
      return Math.ceil(bytes / MIB);
    },
  } satisfies Setting<number>,
  'host-network': {
    description:
      'a named guest network on a bridge that you declared on this host, as name=bridge; may be repeated (Linux only); served by network plugins only',
    value: 'name=bridge',
    fallback: [] as readonly (readonly [string, string])[],
    multiple: true,
    parse: (given, flag) => [hostNetwork(given, flag)],
  } satisfies Setting<readonly (readonly [string, string])[]>,
  'guest-isolation': toggle(
    'keep the guests of this host from reaching each other through its bridge; used by network plugins only',
  ),
  teardown: toggle("at the end take the guests' network down too, unless a guest runs; used by network plugins only"),
  adopt: toggle(
    'take over the VMs of this state directory from the control plane, or the machine, that had them before',
  ),
  'log-level': {
    description: 'least level that is logged: debug, info, warn or error',
    value: 'LEVEL',
    fallback: 'info' as LogLevel,
    shown: 'info',
    parse: (given, flag) => {
      const level = LOG_LEVELS.find((known) => known === given);
      if (level === undefined) throw refuse(flag, LOG_LEVELS.join(', '), given);
      return level;
    },
  } satisfies Setting<LogLevel>,
} as const;

const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export type SettingName = keyof typeof AGENT_SETTINGS;
type ValueOf<N extends SettingName> = (typeof AGENT_SETTINGS)[N] extends Setting<infer T> ? T : never;
export type Settings = { readonly [N in SettingName]: ValueOf<N> };

/** What was given for each setting, as text: by flag, by environment, or by file. */
export type GivenSettings = Readonly<Partial<Record<SettingName, readonly string[]>>>;

export const SETTING_NAMES = Object.keys(AGENT_SETTINGS) as readonly SettingName[];

export const envNameOf = (name: string): string => `EITRI_${name.toUpperCase().replaceAll('-', '_')}`;

/** Parses every setting; later sources stand in front of earlier ones as whole values. */
export function parseSettings(given: GivenSettings): Settings {
  const entries = SETTING_NAMES.map((name) => [name, parseOne(name, given[name])] as const);
  return Object.fromEntries(entries) as unknown as Settings;
}

function parseOne(name: SettingName, texts: readonly string[] | undefined): unknown {
  const setting = AGENT_SETTINGS[name] as Setting<unknown>;
  if (texts === undefined || texts.length === 0) return setting.fallback;
  const values = texts.map((given) => setting.parse(given, `--${name}`));
  return setting.multiple === true ? values.flat() : values.at(-1);
}

type FlagMap<S extends object> = Record<
  keyof S & string,
  Interfaces.OptionFlag<string | undefined> | Interfaces.BooleanFlag<boolean>
>;

/** oclif's flags for some settings. They carry text only: `parseSettings` alone judges it, whatever its source. */
export function oclifFlags<S extends Record<string, Setting<unknown>>>(settings: S): FlagMap<S> {
  const flags = Object.entries(settings).map(([name, setting]) => {
    const shown = setting.shown === undefined ? '' : ` [default: ${setting.shown}]`;
    const description = `${setting.description}${shown}`;
    if (setting.boolean === true) return [name, Flags.boolean({ description })] as const;
    const of = { description, helpValue: setting.value };
    return [name, setting.multiple === true ? Flags.string({ ...of, multiple: true }) : Flags.string(of)] as const;
  });
  return Object.fromEntries(flags) as FlagMap<S>;
}
