/**
 * The test lanes. A lane is a folder of test/ and a vitest project of the same name. `@eitri/*` means the TypeScript
 * sources here, so no lane but those that spawn the built agent (integration, e2e) needs a build first.
 */
import { fileURLToPath } from 'node:url';
import { defineConfig, type TestProjectConfiguration } from 'vitest/config';
import { ClosingLineReporter } from './test/support/closing-line-reporter.js';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

interface Lane {
  readonly name: string;
  readonly timeoutMs: number;
  /** Real guests and real ports share two cores badly: these lanes run one file at a time. */
  readonly oneFileAtATime: boolean;
}

const lanes: readonly Lane[] = [
  { name: 'unit', timeoutMs: 120_000, oneFileAtATime: false },
  { name: 'sim', timeoutMs: 300_000, oneFileAtATime: false },
  { name: 'conformance', timeoutMs: 300_000, oneFileAtATime: false },
  { name: 'integration', timeoutMs: 300_000, oneFileAtATime: false },
  { name: 'e2e', timeoutMs: 600_000, oneFileAtATime: true },
  { name: 'long', timeoutMs: 1_800_000, oneFileAtATime: true },
  { name: 'host', timeoutMs: 1_800_000, oneFileAtATime: true },
];

const project = (lane: Lane, at: number): TestProjectConfiguration => ({
  extends: true,
  test: {
    name: lane.name,
    include: [`test/${lane.name}/**/*.test.ts`],
    setupFiles: [here('./test/support/setup.ts')],
    globalSetup: [here('./test/support/run-folder.ts')],
    environment: 'node',
    pool: 'forks',
    testTimeout: lane.timeoutMs,
    hookTimeout: lane.timeoutMs,
    fileParallelism: !lane.oneFileAtATime,
    // One lane after the other: lanes differ in their number of workers, and a heavy one would spoil a light one's times.
    sequence: { groupOrder: at },
    restoreMocks: true,
    unstubEnvs: true,
    unstubGlobals: true,
  },
});

export default defineConfig({
  resolve: {
    alias: [
      { find: /^@eitri\/core\/(contracts|kit|reconcile)$/, replacement: here('./src/core/$1/index.ts') },
      { find: /^@eitri\/(protocol|conformance)$/, replacement: here('./src/$1/index.ts') },
      { find: /^@eitri\/plugin-([a-z-]+)$/, replacement: here('./plugins/$1/src/index.ts') },
    ],
  },
  // tsyringe's decorators are the legacy kind; no metadata is emitted, neither here nor by tsc.
  oxc: { decorator: { legacy: true, emitDecoratorMetadata: false } },
  test: {
    projects: lanes.map(project),
    passWithNoTests: true,
    allowOnly: false,
    reporters: ['default', new ClosingLineReporter()],
    coverage: {
      provider: 'v8',
      include: ['src/core/**/*.ts'],
      exclude: ['src/core/dist/**'],
      reportsDirectory: 'coverage',
      reporter: ['text-summary', 'html', 'json-summary'],
      thresholds: { lines: 90 },
    },
  },
});
