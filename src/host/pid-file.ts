/**
 * The text of a pidfile: which process, in which boot of the host, started when. Pure.
 *
 * A pid alone is no evidence: it is given out again, after a reboot to anybody. What can't be read in full is therefore
 * no evidence either, and never half a pid to signal.
 */
export interface PidEvidence {
  readonly pid: number;
  /** The host boot it was started in. */
  readonly bootId: string;
  /** When it started, as this system's process table says it: opaque, compared as a whole. */
  readonly startTime: string;
}

/** Longest text that is looked at. */
export const MAX_PID_FILE_BYTES = 4096;
/** The kernel's own bound (PID_MAX_LIMIT). */
const MAX_PID = 2 ** 22;

export const formatPidFile = (evidence: PidEvidence): string =>
  `${JSON.stringify({ pid: evidence.pid, bootId: evidence.bootId, startTime: evidence.startTime })}\n`;

/** Undefined for anything but a whole record. */
export function parsePidFile(text: string): PidEvidence | undefined {
  if (text.length > MAX_PID_FILE_BYTES) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const { pid, bootId, startTime } = value as Readonly<Record<string, unknown>>;
  if (!isSignallable(pid) || !isWord(bootId) || !isWord(startTime)) return undefined;
  return { pid, bootId, startTime };
}

/** 0 and below mean groups, or everybody, to kill(2); 1 is the system's first process, never a VMM. */
const isSignallable = (pid: unknown): pid is number =>
  typeof pid === 'number' && Number.isInteger(pid) && pid > 1 && pid <= MAX_PID;

const isWord = (text: unknown): text is string => typeof text === 'string' && text !== '';
