/**
 * The cases of test/types/pins.ts once more, without their @ts-expect-error, through the compiler's API: an expected error
 * is also "met" by a misspelt type, so what the compiler says is compared with the sentence beside each case.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { beforeAll, describe, expect, it } from 'vitest';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const pinsFile = here('../../types/pins.ts');
const DIRECTIVE = /^\/\/ @ts-expect-error (.+)$/;

interface Case {
  /** Line of the error, from 1. */
  readonly line: number;
  readonly name: string;
  readonly sentence: string;
}

/** Directives become plain comments, so that each line keeps its number. */
function casesOf(source: string): { readonly bare: string; readonly cases: readonly Case[] } {
  const lines = source.split('\n');
  const cases: Case[] = [];
  lines.forEach((line, at) => {
    const sentence = DIRECTIVE.exec(line)?.[1];
    if (sentence === undefined) return;
    const next = lines.findIndex((l, i) => i > at && !l.startsWith('//'));
    const name = /^export type (\w+) = Expect</.exec(lines[next] ?? '')?.[1];
    if (name === undefined) throw new Error(`no case below line ${(at + 1).toString()}`);
    cases.push({ line: next + 1, name, sentence });
  });
  return { bare: lines.map((l) => (DIRECTIVE.test(l) ? '//' : l)).join('\n'), cases };
}

function compile(source: string): readonly { readonly line: number; readonly text: string }[] {
  const config = ts.readConfigFile(here('../../../tsconfig.base.json'), (path) => readFileSync(path, 'utf8'));
  const { options } = ts.parseJsonConfigFileContent(config.config, ts.sys, here('../../..'));
  const all: ts.CompilerOptions = {
    ...options,
    composite: false,
    incremental: false,
    noEmit: true,
    // The sources, so that no build is needed first.
    paths: {
      '@eitri/core/*': [here('../../../src/core/*/index.ts')],
      '@eitri/conformance': [here('../../../src/conformance/index.ts')],
    },
  };
  const host = ts.createCompilerHost(all);
  const read = host.getSourceFile.bind(host);
  host.getSourceFile = (name, version, onError, fresh) =>
    name === pinsFile ? ts.createSourceFile(name, source, version) : read(name, version, onError, fresh);
  const program = ts.createProgram([pinsFile], all, host);
  const file = program.getSourceFile(pinsFile);
  return [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)].map((d) => ({
    line: (file?.getLineAndCharacterOfPosition(d.start ?? 0).line ?? -1) + 1,
    text: ts.flattenDiagnosticMessageText(d.messageText, '\n'),
  }));
}

const { bare, cases } = casesOf(readFileSync(pinsFile, 'utf8'));

describe('pins that drifted', () => {
  let errors: ReturnType<typeof compile>;
  beforeAll(() => {
    errors = compile(bare);
  });

  it.each(cases)('$name: the compiler says "$sentence"', ({ line, sentence }) => {
    const here = errors.filter((e) => e.line === line);
    expect(here.map((e) => e.text)).toEqual([expect.stringContaining(`"${sentence}"`)]);
    expect(here[0]?.text).toContain(`does not satisfy the constraint 'true'`);
  });

  it('nothing but the drifts fails: what keeps its contract compiles', () => {
    const lines = cases.map((c) => c.line);
    expect(errors.filter((e) => !lines.includes(e.line))).toEqual([]);
  });

  it('each of the five contracts is tried with each of the seven drifts', () => {
    for (const contract of ['P', 'N', 'H', 'C', 'S']) {
      for (let drift = 1; drift <= 7; drift++) {
        expect(cases.map((c) => c.name)).toContain(`${contract}${drift.toString()}`);
      }
    }
  });
});
