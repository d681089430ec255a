/**
 * Says that something in a folder may have changed. Only a hint to look again: what it misses the periodic look finds,
 * and what it invents costs one look.
 */
import type { Logger } from '@eitri/core/contracts';
import { watch, type FSWatcher } from 'chokidar';

export class FolderWatcher {
  private watcher: FSWatcher | undefined;
  private identity: string | undefined;

  constructor(
    private readonly log: Logger,
    private readonly hint: () => void,
  ) {}

  /**
   * Watches these folders; `identity` says which they are. Other ones in their places (unmounted, removed, made again)
   * need another watcher: the old one looks at what is gone.
   */
  readonly arm = async (identity: string, folders: readonly string[]): Promise<void> => {
    if (identity === this.identity) return;
    await this.close();
    this.identity = identity;
    const watcher = watch([...folders], { ignoreInitial: true, depth: 0, ignorePermissionErrors: true });
    this.watcher = watcher;
    watcher.on('all', () => this.hint());
    // `all` drops a second change of a file within 50 ms for good; here everything comes, twice as often.
    watcher.on('raw', () => this.hint());
    // What changed between the look that led here and now was seen by no watcher.
    watcher.on('ready', () => this.hint());
    watcher.on('error', (err) => {
      this.log.warn('manifests.watch.failed', { err });
      this.identity = undefined;
    });
  };

  readonly close = async (): Promise<void> => {
    const old = this.watcher;
    this.watcher = undefined;
    this.identity = undefined;
    await old?.close();
  };
}
