import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { cutDocument, replaceDocument, segmentsOf, setPowerIn } from '../../../src/control/local/document-edit.js';

const WEB = `# Web, for the shop
apiVersion: eitri/v1   # ours
kind: VirtualMachine
metadata: {name: web}
spec:
  # two are enough
  cpus: 2
  image: "debian-12"

  power: running  # until the move
`;

const textOf = (edit: { kind: string; text?: string; why?: string }): string =>
  edit.text ?? `refused: ${edit.why ?? ''}`;

describe('setting power', () => {
  it('changes the word and no other byte', () => {
    expect(textOf(setPowerIn(WEB, 0, 'stopped'))).toBe(WEB.replace('power: running', 'power: stopped'));
    expect(textOf(setPowerIn(WEB, 0, 'running'))).toBe(WEB);
  });

  it.each([
    ['a block', 'spec:\n  # c\n  image: x\n', 'spec:\n  # c\n  power: stopped\n  image: x\n'],
    ['a deep block with CRLF', 'spec:\r\n      image: x\r\n', 'spec:\r\n      power: stopped\r\n      image: x\r\n'],
    ['one line', 'spec: {image: x}\n', 'spec: {power: stopped, image: x}\n'],
    [
      'JSON on one line',
      '{"spec":{"image":"x"}}',
      '{"spec":{"power":"stopped", "image":"x"}}'.replace('{"power":"stopped"', '{"power": "stopped"'),
    ],
    ['JSON over lines', '{"spec": {\n\t"image": "x"\n}}\n', '{"spec": {\n\t"power": "stopped",\n\t"image": "x"\n}}\n'],
    ['JSON with the field', '{"spec": {"power": "running"}}', '{"spec": {"power": "stopped"}}'],
    ['single quotes', "spec:\n  power: 'running'\n", "spec:\n  power: 'stopped'\n"],
  ])('adds or changes it in %s, in the same look', (_what, before, after) => {
    expect(textOf(setPowerIn(before, 0, 'stopped'))).toBe(after);
  });

  it('changes only the document that is meant', () => {
    const text = `---\n${WEB}---\n${WEB.replace('web}', 'db}')}`;
    const edited = textOf(setPowerIn(text, 1, 'stopped'));
    expect(edited.split('power: running')).toHaveLength(2);
    expect(edited.indexOf('power: stopped')).toBeGreaterThan(edited.indexOf('name: db'));
  });

  it('over an anchor of its own document adds the field beside what is merged', () => {
    const text = 'base: &b {image: x, power: running}\nspec:\n  <<: *b\n  cpus: 1\n';
    expect(textOf(setPowerIn(text, 0, 'stopped'))).toBe(text.replace('  <<', '  power: stopped\n  <<'));
  });

  it.each([
    ['the spec is an alias', 'base: &b {image: x}\nspec: *b\n'],
    ['the word is shared', 'other: *p\nspec: {image: x}\n'],
    ['the word is an anchor that others use', 'spec:\n  power: &p running\n  hostname: *p\n'],
    ['the spec is what others use', 'spec: &s\n  image: x\nother: *s\n'],
    ['there is no map', 'spec: x\n'],
  ])('is refused with what to do by hand where %s', (_what, text) => {
    expect(textOf(setPowerIn(text, 0, 'stopped'))).toMatch(/^refused: set power: stopped under spec by hand/);
  });
});

describe('cutting a document out', () => {
  const three = `# head\na: 1\n---\n# of b\nb: 2 # two\n---\nc: 3\n`;

  it.each([
    [0, '# head\na: 1\n', '---\n# of b\nb: 2 # two\n---\nc: 3\n'],
    [1, '---\n# of b\nb: 2 # two\n', '# head\na: 1\n---\nc: 3\n'],
    [2, '---\nc: 3\n', '# head\na: 1\n---\n# of b\nb: 2 # two\n'],
  ])('at %i keeps its comments and those of the others', (index, document, rest) => {
    expect(cutDocument(three, index)).toEqual({ kind: 'cut', document, rest });
  });

  it('that is the only one takes the whole text, comments and empty documents too', () => {
    const text = '# head\n---\na: 1\n---\n# nothing here\n';
    expect(cutDocument(text, 0)).toEqual({ kind: 'cut', document: text, rest: undefined });
  });

  it('never changes what the others say, nor itself', () => {
    const word = fc.constantFrom('a', 'b: x', '- 1', '"---"', '|\n  text\n  ---\n', '{x: [1, 2]}', "'...'", '# only');
    const separator = fc.constantFrom('---\n', '...\n---\n', '--- # note\n', '---\n# of the next\n');
    const texts = fc.array(fc.tuple(separator, word), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(texts, fc.nat(4), fc.boolean(), (parts, index, crlf) => {
        const lf = parts.map(([sep, body]) => `${sep}${body}\n`).join('');
        const text = crlf ? lf.replaceAll('\n', '\r\n') : lf;
        const values = (yaml: string): unknown[] => [...parseAllDocuments(yaml)].map((d): unknown => d.toJS());
        const cut = cutDocument(text, index);
        if (cut.kind === 'refused') return;
        if (cut.rest === undefined) expect(cut.document).toBe(text);
        else {
          expect(values(cut.rest)).toEqual(values(text).toSpliced(index, 1));
          expect(values(cut.document)).toEqual([values(text)[index]]);
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe('replacing a document', () => {
  it.each([
    [0, 'A: 1', 'A: 1\n---\nb: 2\n'],
    [1, '# new\nB: 2\n', 'a: 1\n---\n# new\nB: 2\n'],
    [1, '---\nB: 2', 'a: 1\n---\nB: 2'],
  ])('at %i leaves the others', (index, document, after) => {
    expect(textOf(replaceDocument('a: 1\n---\nb: 2\n', index, document))).toBe(after);
  });

  it('by more than one, or by none, is refused', () => {
    expect(textOf(replaceDocument('a: 1\n', 0, 'x: 1\n---\ny: 1\n'))).toMatch(/^refused/);
    expect(textOf(replaceDocument('a: 1\n', 0, 'x: [\n'))).toMatch(/^refused/);
  });
});

it('the segments of any text are the whole text', () => {
  const text = '# a\n%YAML 1.2\n---\na\n...\n# between\n---\nb\n--- |\n  ---\n';
  expect(segmentsOf(text)?.join('')).toBe(text);
});
