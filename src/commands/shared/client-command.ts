/**
 * Commands that talk to the running agent.
 */
import { EXIT, type ExitCode, withExitCode } from '@eitri/core/kit';
import { AdminClient, ClientError, type ClientErrorKind } from '../../client/index.js';
import { AgentCommand, hostOs, placesOf, type PlaceFlags } from './agent-command.js';

const CODES: Readonly<Record<ClientErrorKind, ExitCode>> = {
  unreachable: EXIT.unreachable,
  forbidden: EXIT.notPermitted,
  notPermitted: EXIT.notPermitted,
  notFound: EXIT.notFound,
  ambiguous: EXIT.usage,
  invalid: EXIT.badInput,
  conflict: EXIT.tryAgain,
  unavailable: EXIT.tryAgain,
  busy: EXIT.tryAgain,
  internal: EXIT.failed,
};

export abstract class ClientCommand extends AgentCommand {
  /** Gives the client of the agent that these flags mean, and lets go of it afterwards. */
  protected async withAgent<T>(
    flags: PlaceFlags,
    work: (client: AdminClient, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const client = new AdminClient({
      runDir: placesOf(flags).runDir,
      os: hostOs,
      startHint: startHint(flags),
    });
    const over = new AbortController();
    try {
      return await work(client, over.signal);
    } catch (error) {
      if (error instanceof ClientError) throw withExitCode(error, CODES[error.kind]);
      throw error;
    } finally {
      over.abort(new Error('the command ends'));
      await client.close();
    }
  }
}

/** What to type to get an agent that these same flags find. */
function startHint(flags: PlaceFlags): string {
  const said = (['state-dir', 'run-dir'] as const).flatMap((name) => {
    const value = flags[name];
    return value === undefined ? [] : [`--${name} ${value}`];
  });
  return ['eitri-agent run', ...said].join(' ');
}
