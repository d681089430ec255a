/**
 * Tries a plugin's entry in a process of its own: one that throws, ends the process or never finishes loading then costs
 * a sentence, and not the command that looked.
 */
import type { Runner } from '@eitri/core/contracts';
import { errorLine } from '@eitri/core/kit';
import { entryUrl, exportRefusal, throwsSentence, type ExportedBackend } from './load.js';
import type { PluginPackage } from './plugin-catalog.js';

const PROBE_MS = 20_000;
/** Node's code for a top-level await that nothing is left to settle. */
const UNSETTLED = 13;
const ANY_CODE = Array.from({ length: 256 }, (_, code) => code);

export interface ProbeTools {
  readonly runner: Runner;
  /** Path of node itself. */
  readonly node: string;
  /** `bin/probe-plugin.js`, which imports what it is told and prints a line of JSON. */
  readonly script: string;
}

type Verdict = { readonly backend?: ExportedBackend } | { readonly error: string };

/** Why the entry is no backend, as a sentence; undefined: it is the one that its package.json declares. */
export async function probeEntry(
  { manifest, root }: PluginPackage,
  { runner, node, script }: ProbeTools,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (manifest === undefined) return undefined;
  const args = [script, entryUrl(root, manifest)];
  let stdout: string;
  let exitCode: number;
  try {
    const request = { command: node, args, timeoutMs: PROBE_MS, okCodes: ANY_CODE };
    ({ stdout, exitCode } = await runner.run(request, signal));
  } catch (error) {
    signal.throwIfAborted();
    return throwsSentence(errorLine(error));
  }
  const verdict = verdictOf(stdout);
  if (verdict === undefined) {
    return throwsSentence(exitCode === UNSETTLED ? 'its top-level await never ends' : 'it ends the process');
  }
  return 'error' in verdict ? throwsSentence(verdict.error) : exportRefusal(verdict.backend, manifest);
}

/** The last line is the script's own; the entry may have printed too. */
function verdictOf(stdout: string): Verdict | undefined {
  try {
    const verdict = JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '') as unknown;
    return typeof verdict === 'object' && verdict !== null ? verdict : undefined;
  } catch {
    return undefined;
  }
}
