/**
 * The plugins of a host, as text for people. Pure.
 */
import { wrap } from '../../app/complaint.js';
import type { ChoiceView, PluginListing, PluginRow } from '../../app/plugin-listing.js';
import { table } from './table.js';

const INDENT = '    ';

export function pluginsText({ plugins, backend, network }: PluginListing, columns: number): string {
  const choices = [choiceText('backend', backend), ...(network === undefined ? [] : [choiceText('network', network)])];
  const last = choices.map((text) => `${wrap(text, columns, INDENT)}\n`).join('');
  if (plugins.length === 0) return `No plugins.\n\n${last}`;
  const lines = table(
    plugins,
    [
      { title: 'PLUGIN', of: ({ name }) => name },
      { title: 'KIND', of: ({ kind }) => kind ?? '-' },
      { title: 'VERSION', of: ({ version }) => version ?? '-' },
      { title: 'CONTRACT', of: ({ contract }) => String(contract ?? '-') },
      { title: 'FROM', of: ({ origin }) => origin ?? '-' },
      { title: 'STATE', of: ({ state }) => state },
    ],
    undefined,
  ).split('\n');
  const [head = '', ...rows] = lines;
  const told = plugins.map((row, at) => [rows[at] ?? '', ...remarks(row, columns)].join('\n'));
  return `${[head, ...told].join('\n')}\n\n${last}`;
}

const choiceText = (what: string, choice: ChoiceView): string =>
  'name' in choice ? `${what}: ${choice.name} (${choice.because})` : `${what}: none: ${choice.refused}`;

const remarks = ({ reason, notes }: PluginRow, columns: number): readonly string[] =>
  [...(reason === undefined ? [] : [reason]), ...notes].map((text) => wrap(text, columns, INDENT, INDENT));
