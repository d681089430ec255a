/**
 * Says that something in a folder may have changed. Only a hint to look again: what it misses the periodic look finds,
 * and what it invents costs one look.
 */
import type { Logger } from '@eitri/core/contracts';
import { errorLine } from '@eitri/core/kit';
import { watch, type FSWatcher } from 'chokidar';

export class FolderWatcher {
  private watcher: FSWatcher | undefined;
  private identity: string | undefined;
  private failed = false;
  private lastTrouble: string | undefined;

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
    // It goes on with what it can watch. ARMED AGAIN AT ONCE IT WOULD FAIL AT ONCE: a link in a circle, a limit reached.
    watcher.on('error', (err) => {
      this.failed = true;
      const trouble = errorLine(err);
      if (trouble !== this.lastTrouble) this.log.warn('manifests.watch.failed', { err });
      this.lastTrouble = trouble;
    });
  };

  /** Lets the next `arm` try anew what failed. Only for who comes by the clock, never at a hint. */
  readonly retry = (): void => {
    if (this.failed) this.identity = undefined;
  };

  readonly close = async (): Promise<void> => {
    const old = this.watcher;
    this.watcher = undefined;
    this.identity = undefined;
    this.failed = false;
    await old?.close();
  };
}
