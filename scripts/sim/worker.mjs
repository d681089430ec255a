/**
 * One thread of a `Pool`: plays the histories it is told of and answers one by one, then once for all.
 */
import { parentPort, workerData } from 'node:worker_threads';

const mutation = (globalThis.__stryker__ = { activeMutant: workerData.mutant });
const { tryHistory } = await import(workerData.path);

parentPort.on('message', async ({ seeds, mutant, shrink = false, cover = false, hitLimit }) => {
  mutation.activeMutant = mutant;
  mutation.hitCount = hitLimit === undefined ? undefined : 0;
  mutation.hitLimit = hitLimit;
  const covered = [];
  for (const seed of seeds) {
    mutation.currentTestId = cover ? String(seed) : undefined;
    const result = await tryHistory(seed, shrink);
    parentPort.postMessage({ result: { seed, ...result } });
    if (cover) {
      const { static: atLoad, perTest } = mutation.mutantCoverage ?? { static: {}, perTest: {} };
      covered.push({ seed, hits: { ...perTest[seed] }, atLoad: Object.keys(atLoad) });
      delete perTest[seed];
    }
    if (mutant !== undefined && result.failure !== undefined) break;
  }
  parentPort.postMessage({ covered });
});
