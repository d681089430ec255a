/**
 * Closes every run with `N passed, N failed`, the line that scripts/test sums up, and makes a run with a skipped or
 * todo test fail: such a test reads as green and holds nothing. Also counted as failed: a file that could not be loaded,
 * an error outside every test, a gate that said no (coverage). A run that is interrupted closes with what ran so far, and
 * one failed.
 * Held by test/unit/build/closing-line-reporter.test.ts.
 */
import { writeSync } from 'node:fs';
import type { Reporter, SerializedError, TestCase, TestModule, Vitest } from 'vitest/node';

export interface RunCounts {
  readonly passed: number;
  readonly failed: number;
  /** Names of tests that did not run although nobody filtered them away. */
  readonly skipped: readonly string[];
}

/** The parts of vitest's modules that counting needs. */
export interface CountedModule {
  readonly moduleId: string;
  readonly children: {
    readonly allTests: () => Iterable<{ readonly fullName: string; readonly result: () => { readonly state: string } }>;
    readonly allSuites: () => Iterable<{ readonly errors: () => readonly unknown[] }>;
  };
  readonly errors: () => readonly unknown[];
}

export function countRun(modules: readonly CountedModule[], unhandled: number, filtered: boolean): RunCounts {
  let passed = 0;
  let failed = unhandled;
  const skipped: string[] = [];
  for (const module of modules) {
    // A file or a describe block that failed as such: its own hooks or its import, no test of it says so.
    failed += module.errors().length > 0 ? 1 : 0;
    for (const suite of module.children.allSuites()) failed += suite.errors().length > 0 ? 1 : 0;
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      if (state === 'passed') passed += 1;
      else if (state === 'failed') failed += 1;
      else if (!filtered) skipped.push(`${module.moduleId} > ${test.fullName}`);
    }
  }
  return { passed, failed: failed + skipped.length, skipped };
}

export const closingLine = (passed: number, failed: number): string =>
  `${String(passed)} passed, ${String(failed)} failed`;

export class ClosingLineReporter implements Reporter {
  private vitest: Vitest | undefined;
  private counts: RunCounts = { passed: 0, failed: 0, skipped: [] };
  /** Counted test by test: all that is known of a run that does not come to its end. */
  private readonly soFar = { passed: 0, failed: 0 };
  private state: 'idle' | 'running' | 'ended' = 'idle';

  readonly onInit = (vitest: Vitest): void => {
    this.vitest = vitest;
    // Coverage prints, and may fail the run, after onTestRunEnd; only at exit is everything said.
    process.once('exit', (code) => {
      let { passed, failed } = this.counts;
      if (this.state === 'running') {
        say('the run was interrupted: counted is what ran, and one failed');
        passed = this.soFar.passed;
        failed = this.soFar.failed + 1;
      }
      if (code !== 0 && failed === 0) {
        say('the run failed outside its tests: see above');
        failed = 1;
      }
      say(closingLine(passed, failed));
    });
  };

  readonly onTestRunStart = (): void => {
    this.state = 'running';
  };

  readonly onTestCaseResult = (test: TestCase): void => {
    const { state } = test.result();
    if (state === 'passed') this.soFar.passed += 1;
    else if (state === 'failed') this.soFar.failed += 1;
  };

  readonly onTestRunEnd = (modules: readonly TestModule[], unhandled: readonly SerializedError[]): void => {
    this.state = 'ended';
    const filtered = this.vitest?.config.testNamePattern !== undefined;
    this.counts = countRun(modules, unhandled.length, filtered);
    for (const name of this.counts.skipped) say(`skipped, so counted as failed: ${name}`);
    if (this.counts.failed > 0) process.exitCode = 1;
  };
}

function say(line: string): void {
  try {
    writeSync(1, `${line}\n`);
  } catch {
    // A full or closed pipe at exit: scripts/test counts a run without its closing line as failed.
  }
}
