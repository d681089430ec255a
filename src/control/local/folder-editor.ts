/**
 * The operator's edits of a folder of manifests: the files themselves are changed, each by one rename.
 *
 * Owns what a person could do with an editor and `mv`, and no more: what allows no safe edit is refused with what to do
 * by hand. A file keeps its owner and mode, so that an edit gives nobody's manifest more trust. One edit at a time; a
 * person's own editor may come between, and then wins.
 */
import type { EditOutcome, ManifestEditor, PowerState, VmId } from '@eitri/core/contracts';
import { errorLine, systemCode } from '@eitri/core/kit';
import { chown, mkdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { PRIVATE_FILE_MODE, PRIVATE_FOLDER_MODE, syncFolder, writeAtomically } from '../../host/atomic-file.js';
import { cutDocument, replaceDocument, segmentsOf, setPowerIn } from './document-edit.js';
import { DELETED_FOLDER, type FolderReader, type FolderReading, type ManifestFile } from './folder-reading.js';
import { placesOf, type Place } from './folder-word.js';
import { resolveManifest, type ManifestFileRules } from './manifest-files.js';
import { lineText, parseText, type TextDocument } from './manifest-text.js';

type Refused = Extract<EditOutcome, { kind: 'refused' }>;
type Reason = Refused['reason'];
type Read = Extract<FolderReading, { kind: 'read' }>;

/** Thrown inside an edit, caught at its door: what is nobody's bug and no failure. */
class EditRefusal extends Error {
  constructor(
    readonly reason: Reason,
    readonly why: readonly string[],
  ) {
    super(why.join('; '));
  }
}

const refuse = (reason: Reason, ...why: readonly string[]): EditRefusal => new EditRefusal(reason, why);

/** Where a document stands, with its file. */
interface Found {
  readonly file: ManifestFile;
  readonly document: TextDocument;
}

const MAX_COPIES = 100;
const OWNER_WRITE = 0o200;
/** Errors of the file system that a person mends by hand. */
const BY_HAND = new Set(['EACCES', 'EPERM', 'EROFS']);

export class FolderEditor implements ManifestEditor {
  constructor(
    private readonly rules: ManifestFileRules,
    /** Shared with whoever looks, for what it has parsed already; so both must take turns. */
    private readonly reader: FolderReader,
  ) {}

  readonly setPower = (id: VmId, power: PowerState, signal: AbortSignal): Promise<EditOutcome> =>
    this.edit(signal, async (folder) => {
      const { file, document } = theOne(id, folder.files);
      const broken = document.issues.map((issue) => `${lineText(file.name, issue)}: mend it first`);
      if (broken.length > 0) throw refuse('notEditable', ...broken);
      checkEditable(file);
      const result = setPowerIn(file.text, document.index, power);
      if (result.kind === 'refused') throw refuse('notEditable', `${file.name}:${document.line}: ${result.why}`);
      const changed = result.text !== file.text;
      if (changed) await this.replace(file, result.text);
      return { kind: 'done', changed, edits: [{ id, file: file.name }] };
    });

  readonly remove = (id: VmId, signal: AbortSignal): Promise<EditOutcome> =>
    this.edit(signal, async (folder) => {
      const [grave] = placesOf(folder.deleted).get(id) ?? [];
      if (grave !== undefined && !placesOf(folder.files).has(id)) return unchanged(id, grave.file);
      const found = theOne(id, folder.files);
      checkEditable(found.file);
      const target = freeGrave(id, found.file, folder.deleted);
      await mkdir(join(this.rules.folder, DELETED_FOLDER), { mode: PRIVATE_FOLDER_MODE }).catch((error: unknown) => {
        if (systemCode(error) !== 'EEXIST') throw error;
      });
      await this.move(found, target);
      return { kind: 'done', changed: true, edits: [{ id, file: target }] };
    });

  readonly undelete = (id: VmId, signal: AbortSignal): Promise<EditOutcome> =>
    this.edit(signal, async (folder) => {
      const [here] = placesOf(folder.files).get(id) ?? [];
      if (here !== undefined) return unchanged(id, here.file);
      const found = theOne(id, folder.deleted);
      checkEditable(found.file);
      const target = `${id}${extname(found.file.name)}`;
      if (folder.files.some(({ name }) => name === target)) {
        throw refuse('conflict', `${target} is there and declares others: move ${found.file.name} back by hand`);
      }
      await this.move(found, target);
      return { kind: 'done', changed: true, edits: [{ id, file: target }] };
    });

  readonly write = (text: string, mode: 'create' | 'apply', signal: AbortSignal): Promise<EditOutcome> =>
    this.edit(signal, async (folder) => {
      const plan = await this.plan(text, mode, folder);
      const edits: { id: VmId; file: string }[] = [];
      let changed = false;
      for (const { id, document, target } of plan) {
        edits.push({ id, file: target });
        changed = (await this.put(id, document, target, signal)) || changed;
        await this.unbury(id, signal);
      }
      return { kind: 'done', changed, edits };
    });

  /** All that is to be written and where, or a refusal, before anything is. */
  private async plan(
    text: string,
    mode: 'create' | 'apply',
    folder: Read,
  ): Promise<readonly { readonly id: VmId; readonly document: string; readonly target: string }[]> {
    const parsed = parseText(text);
    if (parsed.kind === 'broken') throw refuse('invalid', ...parsed.issues.map((issue) => lineText('input', issue)));
    const segments = segmentsOf(text);
    const places = placesOf(folder.files);
    const names = new Set(folder.files.map(({ name }) => name));
    const why: string[] = [];
    const plan: { id: VmId; document: string; target: string }[] = [];
    for (const document of parsed.documents) {
      why.push(...document.issues.map((issue) => lineText('input', issue)));
      const { id } = document;
      const segment = parsed.documents.length === 1 ? text : segments?.[document.index];
      if (id === undefined || document.manifest === undefined || segment === undefined) continue;
      if (plan.some((other) => other.id === id)) why.push(`input:${document.line}: ${id} is declared twice: keep one`);
      const here = places.get(id) ?? [];
      const found = here.length === 0 ? undefined : theOne(id, folder.files);
      if (found !== undefined && mode === 'create') {
        throw refuse('conflict', `${id} is declared in ${found.file.name} already: change it there, or apply this`);
      }
      if (found !== undefined) checkEditable(found.file);
      const target = found?.file.name ?? `${id}${isJson(segment) ? '.json' : '.yaml'}`;
      if (found === undefined && names.has(target)) {
        throw refuse('conflict', `${target} is there and declares others: rename it, or write ${id} by hand`);
      }
      // A file that is there keeps its owner, and with it what it may name; a new one is the agent's own.
      const owner = found?.file.stats ?? { uid: this.rules.agentUid, mode: PRIVATE_FILE_MODE };
      const resolved = await resolveManifest(document, owner, this.rules);
      if (resolved?.kind === 'issue') why.push(lineText('input', resolved.issue));
      plan.push({ id, document: segment, target });
    }
    if (parsed.documents.length === 0) why.push('input: no document in it');
    if (why.length > 0) throw refuse('invalid', ...why);
    return plan;
  }

  private async put(id: VmId, document: string, target: string, signal: AbortSignal): Promise<boolean> {
    // Again for each: the one before may have changed this file.
    const { files } = await this.read(signal);
    const here = placesOf(files)
      .get(id)
      ?.find(({ file }) => file === target);
    const file = files.find(({ name }) => name === target);
    if (here === undefined || file === undefined) {
      await writeAtomically(join(this.rules.folder, target), document, PRIVATE_FILE_MODE);
      return true;
    }
    const single = file.parsed.kind === 'documents' && file.parsed.documents.length === 1;
    const result = single
      ? { kind: 'edited' as const, text: document }
      : replaceDocument(file.text, here.document.index, document);
    if (result.kind === 'refused') throw refuse('notEditable', `${target}:${here.document.line}: ${result.why}`);
    if (result.text === file.text) return false;
    await this.replace(file, result.text);
    return true;
  }

  /** Takes away a tombstone that was outlived: it would delete the VM when its file goes one day. */
  private async unbury(id: VmId, signal: AbortSignal): Promise<void> {
    const { deleted } = await this.read(signal);
    for (const place of placesOf(deleted).get(id) ?? []) {
      const found = withFile(place, deleted);
      if (found !== undefined) await this.takeOut(found);
    }
  }

  /** A document alone in its file goes with its file, by one rename; one among others is written first, then cut out. */
  private async move(found: Found, target: string): Promise<void> {
    const { file } = found;
    const cut = this.cut(found);
    if (cut.rest !== undefined) {
      await this.writeAs(file, target, cut.document);
      // It stands in both now, which is no deletion: a crash here is told as an issue.
      await this.replace(file, cut.rest);
      return;
    }
    const from = join(this.rules.folder, file.name);
    const to = join(this.rules.folder, target);
    await this.checkUnchanged(file);
    await rename(from, to);
    await syncFolder(dirname(to));
    await syncFolder(dirname(from));
  }

  private async takeOut(found: Found): Promise<void> {
    const { rest } = this.cut(found);
    if (rest !== undefined) await this.replace(found.file, rest);
    else {
      await this.checkUnchanged(found.file);
      await rm(join(this.rules.folder, found.file.name));
      await syncFolder(dirname(join(this.rules.folder, found.file.name)));
    }
  }

  private cut({ file, document }: Found): { readonly document: string; readonly rest: string | undefined } {
    const cut = cutDocument(file.text, document.index);
    if (cut.kind === 'refused') throw refuse('notEditable', `${file.name}:${document.line}: ${cut.why}`);
    return cut;
  }

  private async replace(file: ManifestFile, text: string): Promise<void> {
    await this.checkUnchanged(file);
    await this.writeAs(file, file.name, text);
  }

  /** Writes with the owner and mode of another file, from the first byte that anybody sees. */
  private async writeAs({ stats }: ManifestFile, target: string, text: string): Promise<void> {
    const path = join(this.rules.folder, target);
    const draft = join(dirname(path), `.${basename(path)}.edit`);
    await writeAtomically(draft, text, stats === undefined ? PRIVATE_FILE_MODE : stats.mode & 0o777);
    try {
      if (stats !== undefined && (stats.uid !== this.rules.agentUid || stats.gid !== (await stat(draft)).gid)) {
        await chown(draft, stats.uid, stats.gid);
      }
      await rename(draft, path);
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    }
    await syncFolder(dirname(path));
  }

  private async checkUnchanged(file: ManifestFile): Promise<void> {
    const now = await stat(join(this.rules.folder, file.name)).catch(() => undefined);
    const same = now?.ino === file.stats?.ino && now?.ctimeMs === file.stats?.ctimeMs && now?.size === file.stats?.size;
    if (!same) throw refuse('conflict', `${file.name} was changed by somebody else just now: try again`);
  }

  private async read(signal: AbortSignal): Promise<Read> {
    const reading = await this.reader.read(signal);
    if (reading.kind === 'out') throw refuse('notEditable', `${reading.issue.source}: ${reading.issue.message}`);
    return reading;
  }

  private async edit(signal: AbortSignal, work: (folder: Read) => Promise<EditOutcome>): Promise<EditOutcome> {
    try {
      return await work(await this.read(signal));
    } catch (error) {
      if (error instanceof EditRefusal) return { kind: 'refused', reason: error.reason, why: error.why };
      if (BY_HAND.has(systemCode(error) ?? '')) {
        const why = `the agent may not write there: do it by hand (${errorLine(error)})`;
        return { kind: 'refused', reason: 'notEditable', why: [why] };
      }
      throw error;
    }
  }
}

const unchanged = (id: VmId, file: string): EditOutcome => ({ kind: 'done', changed: false, edits: [{ id, file }] });

const isJson = (text: string): boolean => text.trimStart().startsWith('{');

function withFile(place: Place, files: readonly ManifestFile[]): Found | undefined {
  const file = files.find(({ name }) => name === place.file);
  return file === undefined ? undefined : { file, document: place.document };
}

function theOne(id: VmId, files: readonly ManifestFile[]): Found {
  const places = placesOf(files).get(id) ?? [];
  const [place] = places;
  const found = place === undefined ? undefined : withFile(place, files);
  if (found !== undefined && places.length === 1) return found;
  if (places.length > 1) {
    const all = places.map(({ file, document }) => `${file}:${document.line}`).join(', ');
    throw refuse('conflict', `${id} stands in ${all}: keep one, by hand`);
  }
  const broken = files.filter(({ parsed }) => parsed.kind === 'broken').map(({ name }) => name);
  if (broken.length === 0) throw refuse('notFound', `no document of ${id} is there`);
  throw refuse(
    'notEditable',
    `no document of ${id} can be found while ${broken.join(', ')} can’t be read: mend it first`,
  );
}

function checkEditable({ name, link, stats }: ManifestFile): void {
  if (link) throw refuse('notEditable', `${name} is a symbolic link: change by hand what it leads to`);
  if (stats !== undefined && (stats.mode & OWNER_WRITE) === 0) {
    throw refuse('notEditable', `${name} is read-only: chmod u+w it, or change it by hand`);
  }
}

/** A name in `.deleted/` under which nobody else's document lies. */
function freeGrave(id: VmId, file: ManifestFile, deleted: readonly ManifestFile[]): string {
  for (let copy = 1; copy <= MAX_COPIES; copy++) {
    const name = join(DELETED_FOLDER, `${id}${copy === 1 ? '' : `.${copy}`}${extname(file.name)}`);
    const there = deleted.find((other) => other.name === name);
    const own = there?.parsed.kind === 'documents' && there.parsed.documents.every((document) => document.id === id);
    // An older life's document makes way: the VM that it stood for is gone, or is this one.
    if (there === undefined || own) return name;
  }
  throw refuse('conflict', `${DELETED_FOLDER} has ${MAX_COPIES} files of ${id}: clear it by hand`);
}
