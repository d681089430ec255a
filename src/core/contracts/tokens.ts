/**
 * The injection tokens of every contract, written once.
 *
 * They are `Symbol.for`, because a plugin that a user installed lives in another `node_modules` tree with its own copy
 * of this file: `Symbol()` would give it tokens that no container of ours knows. The `@1` is the contract's number.
 */
const token = (name: string): symbol => Symbol.for(`eitri.${name}@1`);

export const PROVISIONER = token('provisioner');
export const NETWORK = token('network');
export const HOST_NETWORK = token('host-network');
export const PORT_PUBLISHER = token('port-publisher');
export const PUMP_HOOKS = token('pump-hooks');
export const CONSOLE_SOURCE = token('console-source');
export const PLATFORM = token('platform');
export const SUPERVISOR = token('supervisor');
export const CONTROL_PLANE = token('control-plane');
export const STATE_STORE = token('state-store');
export const DESIRED_STORE = token('desired-store');
export const DESIRED_HOLDS = token('desired-holds');
export const MANIFEST_EDITOR = token('manifest-editor');
export const IMAGE_SOURCE = token('image-source');
export const DISK_SERVICE = token('disk-service');
export const SEED_SOURCE = token('seed-source');
export const CLOCK = token('clock');
export const RANDOM = token('random');
export const RUNNER = token('runner');
export const LOGGER = token('logger');
export const HOST_FACTS = token('host-facts');
export const ENGINE_POLICY = token('engine-policy');
export const EVENT_SINK = token('event-sink');
