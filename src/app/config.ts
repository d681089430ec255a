/**
 * Makes the agent's configuration of everything that was given: flags before environment before file before defaults.
 * Refuses what can't work here before any state is touched. Pure but for the reading of the file.
 */
import { readFile } from 'node:fs/promises';
import type { HostFacts } from '@eitri/core/contracts';
import { errorLine, nearest, exitError, EXIT } from '@eitri/core/kit';
import { parse as parseYaml } from 'yaml';
import { envNameOf, parseSettings, SETTING_NAMES } from './flags.js';
import type { GivenSettings, SettingName, Settings } from './flags.js';

/** The largest image cache that counts as a bound, in GiB: 1 PiB. */
const MAX_CACHE_GIB = 2 ** 20;

export type AgentConfig = Settings & {
  /** Things to tell the operator that did not stop the start. */
  readonly warnings: readonly string[];
};

export interface ConfigSources {
  /** As oclif parsed them: undefined where a flag was not given. */
  readonly flags: Readonly<Record<string, unknown>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The content of the configuration file, as text by name. */
  readonly file: GivenSettings;
}

export function makeConfig(sources: ConfigSources, facts: Pick<HostFacts, 'os'>): AgentConfig {
  const settings = parseSettings({ ...sources.file, ...fromEnv(sources.env), ...fromFlags(sources.flags) });
  const names = settings['host-network'].map(([name]) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw exitError(EXIT.usage, `--host-network: network "${twice}" declared twice`);
  if (names.length > 0 && facts.os !== 'linux') {
    throw exitError(
      EXIT.usage,
      '--host-network: only a Linux host can bridge guests into a network of yours: leave the flag out here, and declare such VMs on one',
    );
  }
  const warnings: string[] = [];
  let cacheGib = settings['image-cache-max-gb'];
  if (cacheGib < 0 || cacheGib > MAX_CACHE_GIB) {
    warnings.push(`--image-cache-max-gb ${cacheGib} is out of range [0, ${MAX_CACHE_GIB}]: images are never evicted`);
    cacheGib = 0;
  }
  return { ...settings, 'image-cache-max-gb': cacheGib, warnings };
}

/** A reserve that leaves nothing would keep every VM pending for ever: better said at the start. */
export function checkMemoryReserve(config: AgentConfig, facts: Pick<HostFacts, 'memoryMib'>): void {
  const reserve = config['memory-reserve'];
  if (reserve < facts.memoryMib) return;
  throw exitError(
    EXIT.badConfiguration,
    `--memory-reserve ${reserve} MiB leaves no VM anything of this host's ${facts.memoryMib} MiB: make it smaller`,
  );
}

function fromFlags(flags: Readonly<Record<string, unknown>>): GivenSettings {
  return pick((name) => {
    const value = flags[name];
    // A switch that was not given is `false` for oclif: only `true` was said by somebody.
    if (value === undefined || value === false) return undefined;
    const values: unknown[] = Array.isArray(value) ? value : [value];
    return values.map((item) => (typeof item === 'string' ? item : JSON.stringify(item)));
  });
}

function fromEnv(env: ConfigSources['env']): GivenSettings {
  return pick((name) => {
    const value = env[envNameOf(name)];
    if (value === undefined) return undefined;
    return name === 'host-network' ? value.split(/[\s,]+/).filter((word) => word !== '') : [value];
  });
}

function pick(of: (name: SettingName) => readonly string[] | undefined): GivenSettings {
  const found = SETTING_NAMES.map((name) => [name, of(name)] as const).filter(([, texts]) => texts !== undefined);
  return Object.fromEntries(found);
}

/** Reads `--config FILE`: a YAML mapping with the flags' names as keys. */
export async function readConfigFile(path: string): Promise<GivenSettings> {
  let content: unknown;
  try {
    content = parseYaml(await readFile(path, 'utf8'));
  } catch (cause) {
    throw exitError(EXIT.badConfiguration, `--config ${path}: can't be read: ${errorLine(cause)}`, cause);
  }
  if (content === null || content === undefined) return {};
  if (typeof content !== 'object' || Array.isArray(content)) {
    throw exitError(EXIT.badConfiguration, `--config ${path}: want a mapping of flag names to values`);
  }
  const given: Partial<Record<SettingName, readonly string[]>> = {};
  for (const [key, value] of Object.entries(content)) {
    const name = SETTING_NAMES.find((known) => known === key);
    if (name === undefined) {
      const near = nearest(key, SETTING_NAMES);
      const hint = near === undefined ? '' : `; did you mean ${near}?`;
      throw exitError(EXIT.badConfiguration, `--config ${path}: unknown setting "${key}"${hint}`);
    }
    const values: unknown[] = Array.isArray(value) ? value : [value];
    if (values.some((item) => typeof item === 'object')) {
      throw exitError(EXIT.badConfiguration, `--config ${path}: ${key}: want a plain value or a list of them`);
    }
    given[name] = values.map(String);
  }
  return given;
}
