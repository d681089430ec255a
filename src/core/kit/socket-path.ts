/**
 * How long the path of a unix socket may be: what the kernel's `sun_path` holds before its closing NUL. Node cuts a longer
 * one silently, and then two sockets are one: whoever binds or connects asks here first.
 */
import type { HostOs } from '../contracts/host-facts.js';

const MAX_BYTES: Readonly<Record<HostOs, number>> = { linux: 107, darwin: 103 };

/** The longest path, in bytes of UTF-8. */
export const maxSocketPathBytes = (os: HostOs): number => MAX_BYTES[os];

/** Whether a socket can stand at this path, whole. */
export const fitsSocketPath = (path: string, os: HostOs): boolean => Buffer.byteLength(path) <= MAX_BYTES[os];
