/**
 * SIGUSR1 writes the coverage collected so far when NODE_V8_COVERAGE names a folder, so that a running agent can be
 * measured without an end; and does nothing otherwise. Without a handler Node would open its inspector: a debugger for
 * everybody who may send a signal. So it is there for every command, before any other code is loaded, until the end.
 *
 * Between its start and this line (5 to 100 ms after the start, measured) Node still opens it; no script can close that gap, and only
 * `node --disable-sigusr1`, which Node has from 22.14 on, does: packages that start the agent may pass it.
 */
import process from 'node:process';
import { takeCoverage } from 'node:v8';

process.on('SIGUSR1', () => {
  if ((process.env.NODE_V8_COVERAGE ?? '') !== '') takeCoverage();
});
