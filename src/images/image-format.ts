/**
 * What a file is, by its first bytes: the only word that counts about an image's format.
 *
 * Pure. Everything that is no disk but looks like a download that went wrong (an archive, a web page) is refused by name:
 * as a raw disk it would boot to nothing and say nothing.
 */
import type { ImageFormat } from '@eitri/core/contracts';
import { permanent } from '@eitri/core/kit';
import { inspectQcow2, QCOW2_HEADER_BYTES, QCOW2_MAGIC, type Qcow2Header } from './qcow2-header.js';

/** How many first bytes the inspection wants. */
export const HEAD_BYTES = QCOW2_HEADER_BYTES;

export type InspectedImage = { readonly format: 'raw' } | { readonly format: 'qcow2'; readonly header: Qcow2Header };

const hex = (text: string): Buffer => Buffer.from(text, 'hex');

/** Beginnings of what is not supported, and what to call it. */
const FOREIGN: readonly (readonly [Buffer, string])[] = [
  [hex('1f8b'), 'gzip-compressed: unpack it first'],
  [hex('fd377a585a00'), 'xz-compressed: unpack it first'],
  [hex('28b52ffd'), 'zstd-compressed: unpack it first'],
  [Buffer.from('BZh'), 'bzip2-compressed: unpack it first'],
  [hex('504b0304'), 'a zip archive: unpack it first'],
  [Buffer.from('7z\xbc\xaf\x27\x1c', 'latin1'), 'a 7z archive: unpack it first'],
  [Buffer.from('KDMV'), 'a VMDK image: convert it with qemu-img first'],
  [Buffer.from('# Disk DescriptorFile'), 'a VMDK descriptor: convert it with qemu-img first'],
  [Buffer.from('vhdxfile'), 'a VHDX image: convert it with qemu-img first'],
  [Buffer.from('conectix'), 'a VHD image: convert it with qemu-img first'],
  [Buffer.from('QED\0'), 'a QED image: convert it with qemu-img first'],
  [Buffer.from('<!doctype', 'latin1'), 'a web page: look at the address in a browser'],
  [Buffer.from('<html', 'latin1'), 'a web page: look at the address in a browser'],
];
const VDI_SIGNATURE = 0x7f10dabe;
const VDI_AT = 0x40;

/**
 * Judges an image by its head. `what` names it in messages. Permanent (`ImageUnsupported`): no image, one that can't be
 * taken, or another format than was declared.
 */
export function inspectImage(what: string, head: Buffer, declared: ImageFormat | undefined): InspectedImage {
  const refuse = (why: string): Error => permanent(`${what} ${why}`, { code: 'ImageUnsupported' });
  if (head.length === 0) throw refuse('is empty');
  const format = probe(head);
  if (declared !== undefined && declared !== format.name) {
    throw refuse(`was declared as ${declared} and is ${format.long}`);
  }
  if (format.name === 'raw') return { format: 'raw' };
  if (format.name === 'foreign') throw refuse(`is ${format.long}`);
  const verdict = inspectQcow2(head);
  if (verdict.kind === 'refused') throw refuse(verdict.why);
  return { format: 'qcow2', header: verdict.header };
}

function probe(head: Buffer): { readonly name: ImageFormat | 'foreign'; readonly long: string } {
  if (head.length >= 4 && head.readUInt32BE(0) === QCOW2_MAGIC) return { name: 'qcow2', long: 'qcow2' };
  const begin = Buffer.from(head.subarray(0, 32));
  // Tags in any case; the binary signatures are compared as they are, first.
  const lower = Buffer.from(begin.toString('latin1').trimStart().toLowerCase(), 'latin1');
  for (const [magic, long] of FOREIGN) {
    if (startsWith(begin, magic) || (magic[0] === 0x3c && startsWith(lower, magic))) return { name: 'foreign', long };
  }
  if (head.length >= VDI_AT + 4 && head.readUInt32LE(VDI_AT) === VDI_SIGNATURE) {
    return { name: 'foreign', long: 'a VDI image: convert it with qemu-img first' };
  }
  return { name: 'raw', long: 'raw' };
}

const startsWith = (bytes: Buffer, magic: Buffer): boolean => bytes.subarray(0, magic.length).equals(magic);
