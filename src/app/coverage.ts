/**
 * SIGUSR1 writes the coverage collected so far, so that a running agent can be measured without an end.
 */
import { takeCoverage } from 'node:v8';

/**
 * Installs the handler, always: without one Node would open its inspector on SIGUSR1, a debugger for anybody who may
 * send a signal. It writes only when `NODE_V8_COVERAGE` names a folder.
 */
export function installCoverageSignal(env: Readonly<Record<string, string | undefined>>): () => void {
  const write = (): void => {
    if (env['NODE_V8_COVERAGE'] !== undefined && env['NODE_V8_COVERAGE'] !== '') takeCoverage();
  };
  process.on('SIGUSR1', write);
  return () => {
    process.off('SIGUSR1', write);
  };
}
