/**
 * What of a plugin's package.json the agent goes by, checked by hand: every command of a host with plugins comes by here,
 * and a schema library takes longer to load than all of them to read.
 */
import type { BackendManifest } from '@eitri/core/contracts';

export interface PackageJson {
  /** Absent: it has none. */
  readonly name?: string;
  readonly version: string;
  /** Undefined: the package is no backend. */
  readonly eitri: unknown;
  readonly oclif: unknown;
}

/** A sentence's end: ` at eitri.kind: want provisioner or network, got "thing"`. */
export class WrongField extends Error {}

type Fields = Readonly<Record<string, unknown>>;

export function parsePackageJson(json: unknown): PackageJson {
  const fields = fieldsOf(json, '');
  return {
    ...optional('name', textOf(fields, '', 'name')),
    version: textOf(fields, '', 'version') ?? '0.0.0',
    eitri: fields['eitri'],
    oclif: fields['oclif'],
  };
}

/** The `eitri` block. Fields that nobody here knows are for other agents. */
export function parseEitriBlock(block: unknown): BackendManifest {
  const at = 'eitri.';
  const fields = fieldsOf(block, 'eitri');
  const { contract, kind } = fields;
  if (typeof contract !== 'number' || !Number.isSafeInteger(contract))
    throw wrong('eitri.contract', 'a whole number', contract);
  if (kind !== 'provisioner' && kind !== 'network') throw wrong('eitri.kind', '"provisioner" or "network"', kind);
  const name = textOf(fields, at, 'name') ?? '';
  if (!/^[a-z0-9][a-z0-9-]{0,31}$/.test(name)) {
    throw wrong('eitri.name', '1 to 32 of [a-z0-9-], the first a letter or digit', fields['name']);
  }
  const os = textsOf(fields, at, 'os');
  if (os === undefined || os.length === 0) throw wrong('eitri.os', 'a list such as ["linux"]', fields['os']);
  const entry = textOf(fields, at, 'entry');
  if (entry === undefined) throw wrong('eitri.entry', 'the path of a module', fields['entry']);
  const needs = fields['needs'] === undefined ? {} : fieldsOf(fields['needs'], 'eitri.needs');
  return {
    contract,
    kind,
    name,
    os,
    entry,
    needs: {
      ...optional('arch', textsOf(needs, 'eitri.needs.', 'arch')),
      ...optional('kvm', switchOf(needs, 'eitri.needs.', 'kvm')),
      ...optional('network', switchOf(needs, 'eitri.needs.', 'network')),
    },
  };
}

function wrong(path: string, want: string, got: unknown): WrongField {
  const shown = got === undefined ? 'nothing' : JSON.stringify(got).slice(0, 60);
  return new WrongField(`${path === '' ? '' : ` at ${path}`}: want ${want}, got ${shown}`);
}

function fieldsOf(value: unknown, path: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong(path, 'an object', value);
  return value as Fields;
}

function textOf(fields: Fields, at: string, name: string): string | undefined {
  const value = fields[name];
  if (value === undefined || (typeof value === 'string' && value !== '')) return value;
  throw wrong(`${at}${name}`, 'a string', value);
}

function textsOf(fields: Fields, at: string, name: string): readonly string[] | undefined {
  const value = fields[name];
  if (value === undefined) return undefined;
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value;
  throw wrong(`${at}${name}`, 'a list of strings', value);
}

function switchOf(fields: Fields, at: string, name: string): boolean | undefined {
  const value = fields[name];
  if (value === undefined || typeof value === 'boolean') return value;
  throw wrong(`${at}${name}`, 'true or false', value);
}

function optional<K extends string, V>(name: K, value: V | undefined): Partial<Record<K, V>> {
  return value === undefined ? {} : ({ [name]: value } as Record<K, V>);
}
