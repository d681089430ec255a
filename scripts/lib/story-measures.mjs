/**
 * What scripts/quickstart-story.mjs measures of files and commands. Owns no state; reads, and changes nothing.
 */
import { readdirSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';

/**
 * How a command failed, in words: what it said may be nothing, as when it was killed.
 * @param {{code?: number | string | null, signal?: string | null, killed?: boolean, stderr?: string, message?: string}} error
 * @param {number} timeoutMs
 */
export function howItEnded({ code, signal, killed, stderr, message }, timeoutMs) {
  const why = killed === true ? ` after ${timeoutMs / 1000} s` : '';
  const said = stderr?.trim() || (typeof code === 'string' ? message : undefined) || 'it said nothing';
  return `exit code ${code ?? 'none'}, signal ${signal ?? 'none'}${why}: ${said}`;
}

/** All that is below a folder, folders with a slash behind, as paths from it. @param {string} folder @returns {string[]} */
const allBelow = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .map((entry) => `${relative(folder, join(entry.parentPath, entry.name))}${entry.isDirectory() ? '/' : ''}`)
    .sort();

/** What tells a file from any other, also from one made anew at its path; undefined: none is there. @param {string} path */
export function fileIdentity(path) {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found === undefined ? undefined : `${found.dev}:${found.ino}, born ${found.birthtimeNs}`;
}

/** Whether a process has this very file open. @param {number} pid @param {string | undefined} identity */
export const holdsOpen = (pid, identity) =>
  identity !== undefined &&
  readdirSync(`/proc/${pid}/fd`).some((fd) => fileIdentity(`/proc/${pid}/fd/${fd}`) === identity);

/** A lock's file stays for ever: one that is made anew would be another lock. */
const STAYS_IN_RUN = /^lock$/;
/** The agent's own records, the folders of what it keeps, and images for the next VM; nothing temporary, nothing partial. */
const STAYS_IN_STATE = /^(?:lock|[a-z-]+\.json|(?:vms|images|volumes)\/|images\/sha256-[0-9a-f]{64}\.(?:json|raw))$/;

/** What a run directory holds that an agent which ended must not leave, empty folders too. @param {string} folder */
export const leftInRun = (folder) => allBelow(folder).filter((path) => !STAYS_IN_RUN.test(path));

/** The same of a state directory whose VMs are gone. @param {string} folder */
export const leftInState = (folder) => allBelow(folder).filter((path) => !STAYS_IN_STATE.test(path));
