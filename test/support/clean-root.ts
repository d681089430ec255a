/**
 * A clean root: this machine's programs and settings, and nothing else of its files. No checkout, nobody's home, no caches,
 * no plugins; of the folders that others keep things in only those of the tests, at their own path.
 *
 * One process holds it, in a mount namespace of its own; what enters it keeps the pid and the arguments that it was started
 * with, so that the agent of one command knows the VMM of another. It is gone with its last process.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';

/** Links where /usr holds all of it. Whatever holds programs and settings can't be written. */
const SYSTEM = 'usr bin sbin lib lib32 lib64 libx32 etc dev proc sys';
const SCRIPT = `set -e
root=$1 tests=$2
mount -t tmpfs -o mode=755 clean-root "$root"
for name in ${SYSTEM}; do
  if [ -h "/$name" ]; then cp -P "/$name" "$root/$name"
  elif [ -e "/$name" ]; then mkdir "$root/$name"; mount --rbind "/$name" "$root/$name"; fi
  case $name in dev|proc|sys) ;; *) [ -h "/$name" ] || [ ! -e "/$name" ] || mount -o remount,bind,ro "$root/$name" ;; esac
done
mkdir -p "$root/run" "$root/tmp" "$root/var/tmp" "$root/root" "$root$tests"
chmod 1777 "$root/tmp" "$root/var/tmp"
mount --bind "$tests" "$root$tests"
exec chroot "$root" sh -c 'echo ready; exec sleep infinity'
`;

export class CleanRoot {
  private constructor(private readonly holder: ChildProcess) {}

  /** `at`: a folder of the tests to mount it on. `host`: words that enter the network that is to be its own. */
  static async make(at: string, host: readonly string[] = []): Promise<CleanRoot> {
    mkdirSync(at);
    const words = [...host, 'unshare', '--mount', 'sh', '-c', SCRIPT, 'sh', at, tmpdir()];
    const holder = spawn(words[0] ?? '', words.slice(1), { stdio: ['ignore', 'pipe', 'pipe'] });
    const root = new CleanRoot(holder);
    let said = '';
    holder.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
    const ready = once(holder.stdout, 'data').then(() => true);
    if (await Promise.race([ready, once(holder, 'exit').then(() => false)])) return root;
    throw new Error(`no clean root could be made: ${said}`);
  }

  /** Words before a command that is to run in it; with its network, if it has one of its own. */
  get enter(): readonly string[] {
    const pid = String(this.holder.pid);
    return ['nsenter', `--target=${pid}`, '--mount', '--net', '--root', '--wd'];
  }

  /** Whatever runs in it keeps it until its own end. */
  async leave(): Promise<void> {
    if (this.holder.exitCode !== null || this.holder.signalCode !== null) return;
    const ended = once(this.holder, 'exit');
    this.holder.kill('SIGKILL');
    await ended;
  }
}
