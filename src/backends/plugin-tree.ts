/**
 * All files that loading a plugin may run: the package's own tree, what its symbolic links lead to, and the packages that
 * it depends on, wherever node would find them. Read only, and bounded.
 *
 * For root each of them must be root's own and nobody else's to write, and so must each folder above: who may rename a
 * folder can put another in its place. (A folder with the sticky bit, like /tmp, lets nobody rename what is root's.)
 */
import type { Stats } from 'node:fs';
import { lstat, readdir, readFile, realpath } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';

const OTHERS_MAY_WRITE = 0o022;
const STICKY = 0o1000;
/** Packages of ours have a hundred files; nobody waits for more than this many to be looked at. */
export const MAX_TREE_FILES = 20_000;

export interface PluginTree {
  /** When any of its files last changed, in milliseconds: what was found out about an older tree is of no use. */
  readonly newestMs: number;
  readonly files: number;
  /** What keeps root from loading it, as a sentence with what to type. */
  readonly untrusted?: string;
}

/** Rejects where the root itself can't be read. */
export async function readTree(root: string): Promise<PluginTree> {
  const walk = new TreeWalk(await realpath(root));
  await walk.run();
  const { newestMs, files, untrusted } = walk;
  return { newestMs, files, ...(untrusted === undefined ? {} : { untrusted }) };
}

class TreeWalk {
  newestMs = 0;
  files = 0;
  untrusted: string | undefined;
  private readonly seen = new Set<string>();
  private readonly queue: string[] = [];

  constructor(private readonly root: string) {}

  /** Goes on after the first thing that is not trusted: the age of the tree is wanted too. */
  async run(): Promise<void> {
    await this.enter(this.root);
    for (let path = this.queue.pop(); path !== undefined; path = this.queue.pop()) {
      if (this.files > MAX_TREE_FILES) {
        this.blame(`${this.root} has more than ${MAX_TREE_FILES} files, too many to see whose they are`);
        return;
      }
      await this.visit(path);
    }
  }

  /** A tree that is not below one that is walked already: the folders above it count too. */
  private async enter(path: string): Promise<void> {
    this.push(path);
    for (let above = dirname(path); ; above = dirname(above)) {
      if (this.seen.has(above)) return;
      this.seen.add(above);
      const found = await lstat(above);
      this.judge(above, found, (found.mode & STICKY) !== 0);
      if (above === dirname(above)) return;
    }
  }

  private push(path: string): void {
    if (this.seen.has(path)) return;
    this.seen.add(path);
    this.queue.push(path);
  }

  private async visit(path: string): Promise<void> {
    const found = await lstat(path);
    this.files += 1;
    if (found.isSymbolicLink()) {
      // Nobody can write a link, and where it leads to is judged; one that leads nowhere loads nothing.
      const target = await realpath(path).catch(() => undefined);
      if (target !== undefined && !this.seen.has(target)) await this.enter(target);
      return;
    }
    this.newestMs = Math.max(this.newestMs, found.mtimeMs);
    this.judge(path, found, false);
    if (found.isDirectory()) {
      for (const name of await readdir(path)) this.push(join(path, name));
    } else if (path.endsWith('/package.json')) {
      await this.followDependencies(path);
    }
  }

  /** As node looks for them: in the `node_modules` of each folder upwards. */
  private async followDependencies(packageJson: string): Promise<void> {
    for (const name of await dependenciesOf(packageJson)) {
      for (let from = dirname(packageJson); ; from = dirname(from)) {
        const found = await realpath(join(from, 'node_modules', name)).catch(() => undefined);
        if (found !== undefined) {
          if (!this.seen.has(found)) await this.enter(found);
          break;
        }
        if (from === dirname(from)) break;
      }
    }
  }

  private judge(path: string, found: Stats, sticky: boolean): void {
    const inside = !relative(this.root, path).startsWith('..');
    if (found.uid !== 0) {
      const mend = inside ? `chown -R root:root ${this.root}` : `chown root:root ${path}`;
      this.blame(`${path} is not owned by root, and this agent runs as root; type: ${mend}`);
    } else if (!sticky && (found.mode & OTHERS_MAY_WRITE) !== 0) {
      const mend = inside ? `chmod -R go-w ${this.root}` : `chmod go-w ${path}`;
      this.blame(`${path} is writable by others than root, and this agent runs as root; type: ${mend}`);
    }
  }

  private blame(sentence: string): void {
    this.untrusted ??= sentence;
  }
}

/** Nothing of a file that is none: what it was to say is then found missing by node too. */
async function dependenciesOf(packageJson: string): Promise<readonly string[]> {
  try {
    const content = JSON.parse(await readFile(packageJson, 'utf8')) as Readonly<Record<string, unknown>>;
    const lists = ['dependencies', 'optionalDependencies', 'peerDependencies'].map((field) => content[field]);
    return lists.flatMap((list) => (typeof list === 'object' && list !== null ? Object.keys(list) : []));
  } catch {
    return [];
  }
}
