/**
 * What kind of user-data somebody handed in, found as cloud-init finds it: by how it begins.
 *
 * Pure. It never changes user-data; it refuses what cloud-init would drop with a line in a log inside the guest, where
 * nobody looks, and finds out whether `#cloud-config` takes the host keys out of our hands.
 */
import { nearest, permanent } from '@eitri/core/kit';
import { isMap, parseDocument } from 'yaml';

export type UserDataForm =
  'none' | 'cloud-config' | 'script' | 'include' | 'boothook' | 'part-handler' | 'archive' | 'jsonp' | 'jinja' | 'mime';

export interface UserData {
  readonly form: UserDataForm;
  /** It brings host keys of its own, or turns vendor-data off: which keys the guest has is then not ours to say. */
  readonly overridesHostKeys: boolean;
}

/** cloud-init knows no limit; a seed is read at every boot and kept for every VM, so we do. */
export const MAX_USER_DATA_BYTES = 2 ** 20;

/** Longest first where one begins with another. */
const MARKERS: readonly (readonly [string, UserDataForm])[] = [
  ['#cloud-config-archive', 'archive'],
  ['#cloud-config-jsonp', 'jsonp'],
  ['#cloud-config', 'cloud-config'],
  ['#cloud-boothook', 'boothook'],
  ['#part-handler', 'part-handler'],
  ['#include-once', 'include'],
  ['#include', 'include'],
  ['## template: jinja', 'jinja'],
  ['#!', 'script'],
];

/** How far cloud-init looks for the header that makes a MIME message of it. */
const MIME_WINDOW = 4096;

export function inspectUserData(userData: string | undefined): UserData {
  if (userData === undefined || userData.trim() === '') return { form: 'none', overridesHostKeys: false };
  const bytes = Buffer.byteLength(userData);
  if (bytes > MAX_USER_DATA_BYTES) {
    throw refused(`has ${bytes} bytes, more than ${MAX_USER_DATA_BYTES}: put files where the guest can fetch them`);
  }
  if (userData.startsWith('\uFEFF')) throw refused('begins with a byte order mark: save it as plain UTF-8');
  const form = formOf(userData);
  return { form, overridesHostKeys: form === 'cloud-config' && configTakesHostKeys(userData) };
}

function formOf(userData: string): UserDataForm {
  const begin = userData.trimStart();
  const lower = begin.toLowerCase();
  const form = MARKERS.find(([marker]) => lower.startsWith(marker) && endsThere(lower, marker))?.[1];
  if (form === 'script' && begin !== userData) {
    throw refused('is a script with blanks before its #!, which no kernel runs: remove them');
  }
  if (form !== undefined) return form;
  if (/^(from |[!-9;-~]+:)/.test(lower) && lower.slice(0, MIME_WINDOW).includes('mime-version:')) return 'mime';
  const firstLine = (begin.slice(0, MIME_WINDOW).split('\n', 1)[0] ?? '').slice(0, 64).trim();
  const meant = nearest(
    firstLine,
    MARKERS.map(([marker]) => marker),
  );
  const hint = meant ?? '#cloud-config or #! and an interpreter';
  // Its line is not repeated: a path that was meant for another file brings somebody's secrets here.
  throw refused(`begins with a line that cloud-init does not know: begin it with ${hint}`);
}

/** `#cloud-config` is not the beginning of `#cloud-configs`; `#!/bin/sh` and `#include https://…` go on as they like. */
function endsThere(text: string, marker: string): boolean {
  if (!marker.startsWith('#cloud') && marker !== '#part-handler') return true;
  return !/[\w-]/.test(text.charAt(marker.length));
}

function configTakesHostKeys(text: string): boolean {
  // 1.1 is what cloud-init's own parser reads; a key given twice is bad style there, not an error.
  const document = parseDocument(text, { version: '1.1', uniqueKeys: false, logLevel: 'silent' });
  const fault = document.errors[0];
  if (fault !== undefined) {
    throw refused(`is #cloud-config that is no YAML: ${(fault.message.split('\n', 1)[0] ?? '').replace(/:$/, '')}`);
  }
  if (document.contents === null) return false;
  if (!isMap(document.contents)) throw refused('is #cloud-config that is not a mapping of settings');
  const vendor: unknown = document.getIn(['vendor_data', 'enabled']);
  return document.has('ssh_keys') || (vendor !== undefined && vendor !== true);
}

const refused = (what: string): Error => permanent(`the user-data ${what}`, { code: 'SpecInvalid' });
