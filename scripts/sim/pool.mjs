/**
 * Threads that play histories. A thread that loops for ever or dies is replaced, and its work is answered as it stands.
 */
import { clearTimeout, setTimeout } from 'node:timers';
import { Worker } from 'node:worker_threads';

const WORKER = new URL('./worker.mjs', import.meta.url);

export class Pool {
  #workers = new Map();

  /** @param {string} path The bundle. @param {number} size */
  constructor(path, size) {
    this.path = path;
    this.size = size;
  }

  /** Hands each item, in order, to `work` with a thread that is free. */
  async each(items, work) {
    let next = 0;
    const lane = async (at) => {
      while (next < items.length) {
        const item = items[next++];
        await work((task, limitMs) => this.#run(at, task, limitMs), item);
      }
    };
    await Promise.all(Array.from({ length: this.size }, (_, at) => lane(at)));
  }

  async close() {
    await Promise.all([...this.#workers.values()].map(({ worker }) => worker.terminate()));
    this.#workers.clear();
  }

  /** `ended` says why the thread is gone; `results` are what it had told by then. */
  async #run(at, task, limitMs) {
    // What is done while modules load is mutated only if the mutant is named before.
    if (task.fresh) await this.#end(at);
    const thread = this.#workers.get(at) ?? this.#start(at, task.mutant);
    const results = [];
    let covered;
    let timer;
    const ended = await new Promise((resolve) => {
      timer = setTimeout(() => resolve(`no end after ${limitMs} ms`), limitMs);
      thread.hear = (message) => {
        if (message.result !== undefined) results.push(message.result);
        else {
          covered = message.covered;
          resolve(undefined);
        }
      };
      thread.died = resolve;
      if (thread.why !== undefined) resolve(thread.why);
      thread.worker.postMessage(task);
    });
    clearTimeout(timer);
    if (ended !== undefined || task.fresh) await this.#end(at);
    return { results, covered, ended };
  }

  #start(at, mutant) {
    const worker = new Worker(WORKER, { workerData: { path: this.path, mutant } });
    const thread = { worker, why: undefined, hear: () => {}, died: () => {} };
    const dies = (why) => {
      thread.why ??= why;
      thread.died(thread.why);
    };
    worker.on('message', (message) => thread.hear(message));
    worker.on('error', (error) => dies(`the thread died: ${error?.message ?? error}`));
    worker.on('exit', (code) => dies(`the thread ended with ${code}`));
    this.#workers.set(at, thread);
    return thread;
  }

  async #end(at) {
    const thread = this.#workers.get(at);
    this.#workers.delete(at);
    await thread?.worker.terminate();
  }
}
