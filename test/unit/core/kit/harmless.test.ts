import { describe, expect, it } from 'vitest';
import { harmless, lastLogLines } from '@eitri/core/kit';

const most = { lines: 3, chars: 20 };

describe('words of others', () => {
  it.each([
    ['a colour', 'a\u001b[31mb', 'a [31mb'],
    ['a line feed', 'a\nb', 'a b'],
    ['a C1 control', 'a\u009b2Jb', 'a 2Jb'],
    ['an override of the reading order', 'a\u202egnp.exe', 'a gnp.exe'],
    ['letters of any language', 'größer 東京 🙂', 'größer 東京 🙂'],
  ])('with %s are one line that steers nothing', (_what, text, shown) => {
    expect(harmless(text)).toBe(shown);
  });
});

describe('the end of a log', () => {
  it.each([
    ['carriage returns before line feeds', 'one\r\ntwo\r\n', ['one', 'two']],
    ['a line that was drawn again and again', '10%\r50%\r100%\n', ['100%']],
    ['colours, titles and cursor moves', '\u001b[1;31mred\u001b[0m\u001b]0;title\u0007\u001b[2J\u001b(B!\n', ['red!']],
    ['a sequence that its end cut off', 'text\u001b[3', ['text']],
    ['a title that never ends', 'text\u001b]0;abc', ['text']],
    ['empty lines', '\n\n one\n\n\n', [' one']],
    ['more lines than are shown', '1\n2\n3\n4\n5\n', ['3', '4', '5']],
    ['a line longer than is shown', 'x'.repeat(30), [`${'x'.repeat(19)}…`]],
    ['nothing', '', []],
  ])('with %s is as a person saw it', (_what, text, lines) => {
    expect(lastLogLines(text, most)).toEqual(lines);
  });

  it('full of beginnings of sequences is read in a moment', () => {
    const began = performance.now();
    lastLogLines('\u001b]'.repeat(16_000), most);
    expect(performance.now() - began).toBeLessThan(1_000);
  });
});
