/**
 * Aborting. `AbortSignal.any` keeps its sources' listeners alive on some Node versions, so links are made and undone by
 * hand.
 */

/** Aborts `controller` when `parent` is; the answer undoes the link. */
export function linkAbort(parent: AbortSignal, controller: AbortController): () => void {
  if (parent.aborted) {
    controller.abort(parent.reason);
    return () => undefined;
  }
  const follow = (): void => {
    controller.abort(parent.reason);
  };
  parent.addEventListener('abort', follow, { once: true });
  return () => {
    parent.removeEventListener('abort', follow);
  };
}

/** Rejects as soon as `signal` is aborted, whether or not `work` listens to it; `work` may go on unseen. */
export async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  let leave: () => void = () => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    leave = () => {
      reject(signal.reason instanceof Error ? signal.reason : new Error('aborted'));
    };
    signal.addEventListener('abort', leave, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', leave);
  }
}
