/**
 * The injection tokens, written once: of each contract that is injected. A control plane and what it is handed are passed
 * by the composition root to one another, and have none.
 *
 * They are `Symbol.for`, because a plugin that a user installed lives in another `node_modules` tree with its own copy
 * of this file: `Symbol()` would give it tokens that no container of ours knows. The `@1` is the contract's number.
 */
const token = (name: string): symbol => Symbol.for(`eitri.${name}@1`);

/** The `Provisioner` of the pinned backend. */
export const PROVISIONER = token('provisioner');
/** The `Network` of the composed network plugin; registered only where there is one. */
export const NETWORK = token('network');
/** Its `HostNetwork`, for the composition root alone. */
export const HOST_NETWORK = token('host-network');
/** The plugin's `PortPublisher`, where it has one. */
export const PORT_PUBLISHER = token('port-publisher');
/** The `PumpHooks` of the console. */
export const PUMP_HOOKS = token('pump-hooks');
/** The pinned backend's `ConsoleSource`. */
export const CONSOLE_SOURCE = token('console-source');
/** The `Platform`: what was made of the plugins. */
export const PLATFORM = token('platform');
/** The `Supervisor`. */
export const SUPERVISOR = token('supervisor');
/** The `StateStore`. */
export const STATE_STORE = token('state-store');
/** The `DesiredStore`. */
export const DESIRED_STORE = token('desired-store');
/** The `ImageSource`. */
export const IMAGE_SOURCE = token('image-source');
/** The `DiskService`. */
export const DISK_SERVICE = token('disk-service');
/** The `SeedSource`. */
export const SEED_SOURCE = token('seed-source');
/** The `Clock`. */
export const CLOCK = token('clock');
/** The `Random`. */
export const RANDOM = token('random');
/** The `Runner`. */
export const RUNNER = token('runner');
/** The `Logger`. */
export const LOGGER = token('logger');
/** The `HostFacts`. */
export const HOST_FACTS = token('host-facts');
/** The engine's `EnginePolicy`, of `@eitri/core/reconcile`. */
export const ENGINE_POLICY = token('engine-policy');
/** The `EventSink`. */
export const EVENT_SINK = token('event-sink');
