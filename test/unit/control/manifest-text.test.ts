import { describe, expect, it } from 'vitest';
import { lineText, parseText } from '../../../src/control/local/manifest-text.js';

const manifest = (name: string, spec = 'image: x'): string =>
  `apiVersion: eitri/v1\nkind: VirtualMachine\nmetadata:\n  name: ${name}\nspec:\n  ${spec}\n`;

/** What a person is told of a file. */
function told(text: string): readonly string[] {
  const parsed = parseText(text);
  const issues = parsed.kind === 'broken' ? parsed.issues : parsed.documents.flatMap((document) => document.issues);
  return issues.map((issue) => lineText('f.yaml', issue));
}

const names = (text: string): readonly (string | undefined)[] => {
  const parsed = parseText(text);
  return parsed.kind === 'broken' ? ['broken'] : parsed.documents.map((document) => document.id);
};

describe('a file of manifests', () => {
  it('may hold several, empty ones between, and JSON with tabs', () => {
    expect(names(`${manifest('a')}---\n---\n# only words\n---\n${manifest('b')}`)).toEqual(['a', 'b']);
    const json = JSON.stringify(
      { apiVersion: 'eitri/v1', kind: 'VirtualMachine', metadata: { name: 'j' }, spec: { image: 'x' } },
      undefined,
      '\t',
    );
    expect([names(json), told(json)]).toEqual([['j'], []]);
    expect(names('# everything is commented out\n')).toEqual([]);
  });

  it('tells each trouble by its line: of the field, of what is near it, of an item, of a wrong word', () => {
    const text = `${manifest('a')}---\n${manifest('b', 'cpus: 0\n  volumes:\n  - name: d\n    size: 1\n  - name: D\n    size: 1\n  pwoer: x')}`;
    expect(told(text)).toEqual([
      'f.yaml:13: spec.cpus: 0 is not in 1..256',
      'f.yaml:12: spec.image: is missing: write a name of the image catalog, or a map with url',
      'f.yaml:17: spec.volumes[1].name: "D" is not a name: write 1 to 63 of a-z, 0-9 and hyphen, not starting with a hyphen',
      'f.yaml:19: spec.pwoer: unknown field: did you mean power?',
    ]);
  });

  it('keeps the name of a document that is refused, and knows none where the name is what is wrong', () => {
    expect(names(`${manifest('a', 'cpus: 0')}---\n${manifest('../x')}`)).toEqual(['a', undefined]);
  });

  it.each([
    ['empty', '', /is empty: is it being written/],
    ['blank', ' \n\n', /is empty/],
    ['NULs', '\0\0\0\0', /NUL bytes/],
    ['cut in a quote', manifest('a', 'image: "debi'), /f\.yaml:\d+: /],
    ['cut in a map', '{"apiVersion": "eitri/v1", "kind', /f\.yaml:\d+: /],
    ['merge conflict marks', `<<<<<<< HEAD\n${manifest('a')}=======\n${manifest('b')}>>>>>>> x\n`, /f\.yaml:\d+: /],
    ['a key twice', manifest('a', 'image: x\n  image: y'), /f\.yaml:7: .*unique/],
    ['an unknown tag', manifest('a', 'image: !secret x'), /f\.yaml:6: .*tag/],
  ])('says nothing as a whole when it is %s', (_what, text, message) => {
    expect(names(text)).toEqual(['broken']);
    expect(told(text).join('\n')).toMatch(message);
  });

  it('with one broken document says nothing as a whole: where it ends is a guess', () => {
    expect(names(`${manifest('a')}---\nspec: [\n---\n${manifest('b')}`)).toEqual(['broken']);
  });

  it('whose aliases expand without end is refused, and its name stays unknown', () => {
    const bomb = ['a: &a [x,x,x,x,x,x,x,x,x]'];
    for (let i = 1; i < 10; i++) {
      const last = String.fromCharCode(96 + i);
      bomb.push(
        `${String.fromCharCode(97 + i)}: &${String.fromCharCode(97 + i)} [${Array(9).fill(`*${last}`).join(',')}]`,
      );
    }
    expect(names(bomb.join('\n'))).toEqual([undefined]);
    expect(told(bomb.join('\n')).join()).toMatch(/^f\.yaml:1: .*alias/i);
  });

  const many = (count: number, line: (index: number) => string): string =>
    Array.from({ length: count }, (_, index) => line(index)).join('');

  it.each([
    ['unknown keys', many(20_000, (i) => `k${i}: 1\n`)],
    ['200,000 unknown keys', many(200_000, (i) => `k${i}: 1\n`)],
    [
      'labels',
      `${manifest('a')}${many(20_000, (i) => `l${i}: "1"\n`)
        .replace(/^/, 'labels:\n')
        .replace(/^l\d/gm, '  $&')}`,
    ],
    ['items', `${manifest('a', 'image: x\n  volumes:')}${many(50_000, () => '  - 1\n')}`],
    ['equal exposures', manifest('a', `image: x\n  exposures: [${many(9000, () => '{hostPort: 1, guestPort: 1},')}]`)],
    ['aliases', many(30_000, (i) => `a${i}: &a${i} 1\nb${i}: *a${i}\n`)],
    ['equal keys', many(30_000, () => 'k: 1\n')],
    ['bad escapes', many(60_000, () => '- "\\x"\n')],
    ['documents', many(100_000, () => '--- 1\n')],
    ['an old form of sets', `%YAML 1.1\n--- !!set\n${many(30_000, (i) => `? k${i}\n`)}`],
    ['a key of a million letters', `${'k'.repeat(1_000_000)}: 1\n`],
  ])('of very many %s is read in time that grows with its size, and told in few short lines', (_what, text) => {
    const lines = told(text);
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.length).toBeLessThanOrEqual(11);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(200);
  });

  it('with thirty unknown fields tells ten, and how many more', () => {
    const lines = told(`${manifest('a', 'image: x')}${many(30, (i) => `  zz${i}: 1\n`)}`);
    expect([lines.length, lines.at(-1)]).toEqual([11, 'f.yaml:1: and 20 more: mend these first']);
  });

  it.each(['[', '{a: ', '- ', '? '])('nested by 50,000 × %j is told once, in words of what to look for', (open) => {
    expect(told(open.repeat(50_000))).toEqual(['f.yaml:1: nests deeper than 64 levels: is a bracket missing?']);
  });

  it('may have one text of many aliases’ looks: stars at its lines’ beginnings are no aliases', () => {
    const stars = many(300, () => '    *x\n');
    expect(told(manifest('a', `image: x\n  userData: |\n    #cloud-config\n${stars}`))).toEqual([]);
  });

  it.each([
    ['1 and "1"', 'x: {1: a, "1": b}\n', /^f\.yaml:1: this field stands in line 1 already/],
    ['an alias as a key', 'a: &a cpus\n*a : 2\n', /^f\.yaml:2: .*where a field’s name should/],
  ])('with %s as keys is refused: one of them would win in silence', (_what, text, message) => {
    expect(told(text).join()).toMatch(message);
  });

  it('that is a list has no field to name', () => {
    expect(told('- a\n')).toEqual(['f.yaml:1: a list is not a map of apiVersion, kind, metadata and spec']);
  });

  it('never has its text repeated by a syntax error, and other text only short and harmless', () => {
    expect(told('root:$y$secret:1\ndaemon:*:2\n').join()).not.toMatch(/secret|daemon/);
    const name = `\u202e${'s'.repeat(400)}`;
    expect(told(`${manifest('a', `image: x`)}  "${name}": 1\n`).join()).toMatch(
      /^f\.yaml:7: spec\["\\u\{202e\}s{20,48}…"\]/,
    );
  });
});
