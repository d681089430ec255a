/**
 * Hosts that this machine is not: words before a command that show it another one, in a mount namespace of its own. The
 * command keeps the pid, and what is mounted goes with its last process.
 */

const inMounts = (script: string, ...words: readonly string[]): readonly string[] => [
  ...['unshare', '--mount', 'sh', '-c', `set -e; ${script} exec "$@"`, 'sh'],
  ...words,
];

/** The device of a driver that is not there, in place of one that may be. */
export const withoutKvm = (): readonly string[] =>
  inMounts(
    'd=$(mktemp); rm "$d"; mknod "$d" c 240 0; if [ -e /dev/kvm ]; then mount --bind "$d" /dev/kvm; fi; rm "$d";',
  );

/** An empty folder in the place of this one. */
export const withoutFolder = (folder: string): readonly string[] =>
  inMounts('mount -t tmpfs -o mode=755 hidden "$1"; shift;', folder);
