/**
 * One file of plain JavaScript from an entry in TypeScript, with the workspace's packages taken from their sources, so
 * that no stale build is run. Other packages stay where they are: the bundle must stand in the checkout to find them.
 */
import { fileURLToPath } from 'node:url';
import { basename, join } from 'node:path';
import { build } from 'vite';

const inCheckout = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/**
 * @param {string} entry The TypeScript file.
 * @param {string} folder Where the bundle goes, below the checkout.
 * @returns {Promise<string>} The path of the bundle.
 */
export async function bundleTo(entry, folder) {
  await build({
    configFile: false,
    logLevel: 'error',
    resolve: {
      alias: [
        { find: /^@eitri\/core\/(contracts|kit|reconcile)$/, replacement: inCheckout('src/core/$1/index.ts') },
        { find: /^@eitri\/(protocol|conformance)$/, replacement: inCheckout('src/$1/index.ts') },
      ],
    },
    oxc: { decorator: { legacy: true, emitDecoratorMetadata: false } },
    build: { ssr: entry, outDir: folder, target: 'node20', minify: false },
  });
  return join(folder, `${basename(entry, '.ts')}.js`);
}
