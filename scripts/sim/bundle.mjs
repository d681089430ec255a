/**
 * The simulation as one file that plain node runs, from the sources; with `mutate`, every mutant of the rooms that it
 * judges is in it, each asleep until `globalThis.__stryker__.activeMutant` names it.
 */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Instrumenter } from '@stryker-mutator/instrumenter';
import { build } from 'vite';

const here = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** What no history comes to has tests of its own: the lock, host keys, the files that are read at start. */
const MUTATED = /\/src\/(core\/reconcile|desired|state\/(state-store|state-schema|state-paths))[^/]*\/?[^/]*\.ts$/;
/** Words for people, which no invariant is about. */
const EXCLUDED = ['StringLiteral', 'Regex'];

const quiet = Object.fromEntries(
  ['trace', 'debug', 'info', 'warn', 'error', 'fatal'].map((level) => [level, () => {}]),
);
const logger = { ...quiet, isDebugEnabled: () => false };

/** Answers the file, its folder, which the caller removes, and the mutants by id. */
export async function bundle({ mutate }) {
  const folder = here(`.cache/sim/${randomBytes(6).toString('hex')}`);
  const mutants = new Map();
  const instrumenter = new Instrumenter(logger);
  const mutator = {
    name: 'mutants',
    enforce: 'pre',
    async transform(content, name) {
      if (!MUTATED.test(name)) return undefined;
      const options = { plugins: ['decorators-legacy'], excludedMutations: EXCLUDED, ignorers: [], noHeader: false };
      const result = await instrumenter.instrument([{ name, content, mutate: true }], options);
      const lines = content.split('\n');
      // Ids are counted file by file: made one count of all.
      const file = name.slice(here('').length);
      for (const mutant of result.mutants) {
        const { start, end } = mutant.location;
        const original =
          start.line === end.line
            ? lines[start.line].slice(start.column, end.column)
            : lines[start.line].slice(start.column);
        mutants.set(`${file}#${mutant.id}`, {
          ...{ file, line: start.line + 1, kind: mutant.mutatorName, original, text: lines[start.line].trim() },
          replacement: mutant.replacement,
        });
      }
      const named = (call) => new RegExp(`\\b(stry${call}_[0-9a-z]+)\\(((?:"\\d+"(?:, )?)+)\\)`, 'g');
      const global = (_, called, ids) =>
        `${called}(${ids.replace(/"(\d+)"/g, (__, id) => JSON.stringify(`${file}#${id}`))})`;
      return result.files[0].content.replace(named('MutAct'), global).replace(named('Cov'), global);
    },
  };
  await build({
    configFile: false,
    root: here(''),
    logLevel: 'error',
    plugins: mutate ? [mutator] : [],
    resolve: {
      alias: [
        { find: /^@eitri\/core\/(contracts|kit|reconcile)$/, replacement: here('src/core/$1/index.ts') },
        { find: /^@eitri\/(protocol|conformance)$/, replacement: here('src/$1/index.ts') },
      ],
    },
    oxc: { decorator: { legacy: true, emitDecoratorMetadata: false } },
    build: { ssr: here('test/support/history/index.ts'), outDir: folder, target: 'node20', minify: false },
  });
  return { folder, path: join(folder, 'index.js'), mutants };
}
