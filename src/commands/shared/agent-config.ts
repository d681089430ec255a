/**
 * The flags of everything that is an agent, or judges how one would start, and the configuration that they make.
 */
import { homedir } from 'node:os';
import { Flags, type Interfaces } from '@oclif/core';
import { makeConfig, readConfigFile, type AgentConfig } from '../../app/config.js';
import { AGENT_SETTINGS, oclifFlags } from '../../app/flags.js';
import { hostOs } from './agent-command.js';

const config = Flags.string({
  helpValue: 'FILE',
  description: 'YAML file with settings under the names of these flags; flags and EITRI_* come before it',
});

export const agentFlags: Interfaces.FlagInput = { ...oclifFlags(AGENT_SETTINGS), config };

/** Of what acts on the guests' network without an agent: all that decides how one would put it up. */
export const networkFlags: Interfaces.FlagInput = {
  ...oclifFlags({
    'state-dir': AGENT_SETTINGS['state-dir'],
    'run-dir': AGENT_SETTINGS['run-dir'],
    backend: AGENT_SETTINGS.backend,
    'guest-network': AGENT_SETTINGS['guest-network'],
    'bridge-cidr': AGENT_SETTINGS['bridge-cidr'],
    'host-network': AGENT_SETTINGS['host-network'],
    'guest-isolation': AGENT_SETTINGS['guest-isolation'],
    'qemu-bin': AGENT_SETTINGS['qemu-bin'],
    'ch-bin': AGENT_SETTINGS['ch-bin'],
    firmware: AGENT_SETTINGS.firmware,
    'vfkit-bin': AGENT_SETTINGS['vfkit-bin'],
  }),
  config,
};

export async function configOf(flags: Readonly<Record<string, unknown>>): Promise<AgentConfig> {
  const path = flags['config'];
  const file = typeof path === 'string' ? await readConfigFile(path) : {};
  return makeConfig({ flags, env: process.env, file }, { os: hostOs });
}

export const home = homedir;
