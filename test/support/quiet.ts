/**
 * Small stand-ins for rooms that take a runner, facts or a logger and where those are beside the point.
 */
import type { HostFacts, LogFields, Logger, Runner, RunRequest, RunResult } from '@eitri/core/contracts';

/** A host like any other. */
export const someFacts = (changes: Partial<HostFacts> = {}): HostFacts => ({
  os: 'linux',
  arch: 'x64',
  bootId: 'boot-1',
  hostname: 'host',
  root: false,
  cpus: 2,
  memoryMib: 4096,
  ...changes,
});

/** Says nothing. */
export const silent: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silent,
};

/** Keeps the events it was told. */
export class KeepingLogger implements Logger {
  readonly events: { readonly event: string; readonly fields: LogFields }[] = [];
  readonly debug = (event: string, fields: LogFields = {}): void => void this.events.push({ event, fields });
  readonly info = this.debug;
  readonly warn = this.debug;
  readonly error = this.debug;
  readonly child = (): Logger => this;
}

/** Answers by a script of ours; knows the programs it is told of. */
export class ScriptedRunner implements Runner {
  readonly requests: RunRequest[] = [];

  constructor(
    private readonly known: readonly string[] = [],
    private readonly answer: (request: RunRequest) => Promise<Partial<RunResult>> = () => Promise.resolve({}),
  ) {}

  readonly run = async (request: RunRequest): Promise<RunResult> => {
    this.requests.push(request);
    return { exitCode: 0, stdout: '', stderr: '', ...(await this.answer(request)) };
  };

  readonly which = (command: string): Promise<string | undefined> =>
    Promise.resolve(this.known.includes(command) ? `/bin/${command}` : undefined);
}

/** A signal that never aborts. */
export const calm = (): AbortSignal => new AbortController().signal;
