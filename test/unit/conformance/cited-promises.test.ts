/** What a suite says of a contract must stand there: a case whose sentence is gone tries what nobody promises. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { consoleSourceCases, provisionerCases, pumpHooksCases } from '@eitri/conformance';

/** A contract's prose: comment marks and line ends are no part of a sentence. */
const proseOf = (contract: string): string =>
  readFileSync(fileURLToPath(new URL(`../../../src/core/contracts/${contract}.ts`, import.meta.url)), 'utf8')
    .replace(/^\s*(\/\*\*|\*\/|\*)/gm, ' ')
    .replaceAll('*/', ' ')
    .replace(/\s+/g, ' ');

it.each([
  { suite: 'provisioner', contracts: ['provisioner', 'observation'], cases: provisionerCases },
  { suite: 'console source', contracts: ['console-source'], cases: consoleSourceCases },
  { suite: 'pump hooks', contracts: ['pump-hooks'], cases: pumpHooksCases },
])('the cases of the $suite suite cite sentences that their contract has', ({ contracts, cases }) => {
  const prose = contracts.map(proseOf).join(' ');
  const sentences = cases.flatMap(({ promise }) => promise.split(' … ')).map((part) => part.replace(/^… /, '').trim());
  expect(sentences.length).toBeGreaterThan(0);
  expect([...new Set(sentences)].filter((sentence) => !prose.includes(sentence))).toEqual([]);
});
