/**
 * One file over HTTP, into a `PartialFile`.
 *
 * Undici's `request`, not `fetch`: fetch decodes what it was not asked to decode, and takes a body that was cut short for
 * whole. Every byte is as the server stores it (`accept-encoding: identity`, a coded answer is refused), a body shorter
 * than its length is never accepted, and a broken transfer goes on where it broke, if the server can show by a validator
 * that it still is the same file. Owns no file and no cache; retries only while there is progress to build on.
 */
import type { Clock } from '@eitri/core/contracts';
import { formatBytes, isPermanent, permanent, retryable, systemCode, told } from '@eitri/core/kit';
import { type Dispatcher, request } from 'undici';
import type { PartialFile } from './partial-file.js';

/** What tells one state of a file from the next. */
export interface Validators {
  readonly etag?: string;
  readonly lastModified?: string;
}

/** A download that may be taken up again. Kept between tries by whoever owns the partial file. */
export interface Transfer {
  readonly partial: PartialFile;
  validators: Validators;
  totalBytes: number | undefined;
}

export interface DownloadRequest {
  readonly url: string;
  readonly transfer: Transfer;
  /** Of the copy that is there already: the server may answer that nothing changed. */
  readonly known: Validators | undefined;
  readonly onProgress: (doneBytes: number, totalBytes: number | undefined) => void;
  /** Called before bytes are taken that were not asked for yet; rejects when they have no room. */
  readonly requireSpace: (moreBytes: number) => Promise<void>;
}

export type DownloadResult =
  | { readonly kind: 'unchanged' }
  /** `framed`: the protocol told the end, so the body is whole as sent. Without it, the end is only where it stopped. */
  | { readonly kind: 'fetched'; readonly framed: boolean };

export interface DownloadOptions {
  readonly clock: Clock;
  /** Proxies, extra CAs; absent: undici's default. */
  readonly dispatcher?: Dispatcher;
}

type Response = Dispatcher.ResponseData;

const MAX_REDIRECTS = 5;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const GONE = new Set([404, 410]);
/** How often one call takes a broken transfer up again; after that the caller's own retries do. */
const MAX_RESUMES = 4;
const RESUME_AFTER_MS = 1_000;
const HEADERS_TIMEOUT_MS = 30_000;
const BODY_TIMEOUT_MS = 60_000;
/** Where no length is told, room is asked for in steps of this. */
const SPACE_STEP_BYTES = 256 * 2 ** 20;

export async function download(
  job: DownloadRequest,
  options: DownloadOptions,
  signal: AbortSignal,
): Promise<DownloadResult> {
  const { transfer } = job;
  for (let resumes = 0; ; resumes++) {
    const before = transfer.partial.doneBytes;
    try {
      return await once(job, options, signal);
    } catch (error) {
      const goesOn = transfer.partial.doneBytes > before && rangeValidator(transfer.validators) !== undefined;
      if (signal.aborted) throw signal.reason;
      if (!goesOn || resumes >= MAX_RESUMES || isPermanent(error) || isOurs(error)) throw error;
      await options.clock.sleep(RESUME_AFTER_MS, signal);
    }
  }
}

async function once(job: DownloadRequest, options: DownloadOptions, signal: AbortSignal): Promise<DownloadResult> {
  const { url, transfer } = job;
  const shown = shownUrl(url);
  const range = transfer.partial.doneBytes > 0 ? rangeValidator(transfer.validators) : undefined;
  const response = await exchange(url, requestHeaders(job, range), options, signal);
  const refuse = async (error: Error): Promise<never> => {
    await discard(response);
    throw error;
  };
  const { statusCode } = response;
  if (statusCode === 304 && job.known !== undefined && range === undefined) {
    await discard(response);
    return { kind: 'unchanged' };
  }
  if (GONE.has(statusCode)) {
    return await refuse(permanent(`${shown} is not there (HTTP ${statusCode})`, { code: 'ImageNotFound' }));
  }
  const coding = header(response, 'content-encoding');
  if (coding !== undefined && coding.toLowerCase() !== 'identity') {
    const why = `came coded as ${coding} although it was asked for as it is: its digest could not be told`;
    return await refuse(permanent(`${shown} ${why}`, { code: 'ImageUnsupported' }));
  }
  if (statusCode === 206 && range !== undefined) {
    const told = /^bytes (\d+)-\d+\/(\d+)$/.exec(header(response, 'content-range') ?? '');
    if (told === null || Number(told[1]) !== transfer.partial.doneBytes || Number(told[2]) !== transfer.totalBytes) {
      await transfer.partial.reset();
      return await refuse(retryable(`${shown} answered with another part than the one asked for`));
    }
    return await receive(job, response, shown);
  }
  if (statusCode === 416) await transfer.partial.reset();
  if (statusCode !== 200) return await refuse(retryable(`${shown} answered HTTP ${statusCode}`));
  if (transfer.partial.doneBytes > 0) await transfer.partial.reset();
  transfer.validators = validatorsOf(response);
  transfer.totalBytes = lengthOf(response);
  return await receive(job, response, shown);
}

async function receive(job: DownloadRequest, response: Response, shown: string): Promise<DownloadResult> {
  const { transfer, onProgress, requireSpace } = job;
  const { partial, totalBytes } = transfer;
  const framed = totalBytes !== undefined || /\bchunked\b/i.test(header(response, 'transfer-encoding') ?? '');
  let granted = totalBytes ?? partial.doneBytes;
  if (totalBytes !== undefined) {
    await requireSpace(totalBytes - partial.doneBytes).catch((error: unknown) => {
      response.body.destroy();
      throw error;
    });
  }
  try {
    onProgress(partial.doneBytes, totalBytes);
    for await (const chunk of response.body as AsyncIterable<Buffer>) {
      if (totalBytes !== undefined && partial.doneBytes + chunk.length > totalBytes) {
        await partial.reset();
        throw retryable(`${shown} sent more than the ${totalBytes} bytes that it announced`);
      }
      if (partial.doneBytes + chunk.length > granted) {
        await requireSpace(SPACE_STEP_BYTES);
        granted = partial.doneBytes + SPACE_STEP_BYTES;
      }
      await partial.append(chunk);
      onProgress(partial.doneBytes, totalBytes);
    }
  } catch (cause) {
    throw retryable(`${shown} broke off after ${amount(partial.doneBytes, totalBytes)}`, { cause });
  } finally {
    // Ends the connection when we left early; after a whole body it is nothing.
    response.body.destroy();
  }
  if (totalBytes !== undefined && partial.doneBytes !== totalBytes) {
    throw retryable(`${shown} ended after ${amount(partial.doneBytes, totalBytes)}`);
  }
  return { kind: 'fetched', framed };
}

/** One request, redirects followed: a few, never to a file, never from https back to http. */
async function exchange(
  from: string,
  headers: Readonly<Record<string, string>>,
  { dispatcher }: DownloadOptions,
  signal: AbortSignal,
): Promise<Response> {
  const start = new URL(from);
  let url = start;
  for (let hops = 0; hops <= MAX_REDIRECTS; hops++) {
    const response = await request(bare(url), {
      method: 'GET',
      headers: { ...headers, ...(url.origin === start.origin ? credentials(start) : {}) },
      signal,
      headersTimeout: HEADERS_TIMEOUT_MS,
      bodyTimeout: BODY_TIMEOUT_MS,
      ...(dispatcher === undefined ? {} : { dispatcher }),
    }).catch((cause: unknown) => {
      if (signal.aborted) throw cause;
      throw unasked(url, cause);
    });
    const location = header(response, 'location');
    if (!REDIRECTS.has(response.statusCode) || location === undefined) return response;
    await discard(response);
    const next = URL.canParse(location, url.href) ? new URL(location, url.href) : undefined;
    if (next === undefined || !['http:', 'https:'].includes(next.protocol)) {
      throw permanent(`${shownUrl(url.href)} leads to ${JSON.stringify(location)}, which is no web address`);
    }
    if (url.protocol === 'https:' && next.protocol === 'http:') {
      throw permanent(`${shownUrl(url.href)} leads from https to http (${shownUrl(next.href)}): name a safe address`);
    }
    url = next;
  }
  throw retryable(`${shownUrl(from)} leads on and on: more than ${MAX_REDIRECTS} redirects`);
}

/** An error that comes before any answer. What is wrong with a certificate is told whole, with the next step last. */
function unasked(url: URL, cause: unknown): Error {
  const asked = `ask ${shownUrl(url.href)}`;
  const trouble = certificateTrouble(systemCode(cause));
  return trouble === undefined
    ? retryable(asked, { cause })
    : told(retryable(`${asked}: its certificate ${trouble}`, { cause }));
}

function certificateTrouble(code: string | undefined): string | undefined {
  switch (code) {
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return 'is for another name: write the name that it is for';
    case 'CERT_HAS_EXPIRED':
    case 'CERT_NOT_YET_VALID':
      return `is not valid today (${code}): have it renewed, or put the clock of this host right`;
    // A chain that leads to no authority which this host knows.
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
    case 'SELF_SIGNED_CERT_IN_CHAIN':
    case 'UNABLE_TO_GET_ISSUER_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
      return `is not trusted here (${code}): start the agent with NODE_EXTRA_CA_CERTS, the path of its authority's certificate`;
    default:
      return undefined;
  }
}

function requestHeaders(job: DownloadRequest, range: string | undefined): Readonly<Record<string, string>> {
  const headers = { 'accept-encoding': 'identity', accept: '*/*', 'user-agent': 'eitri-agent' };
  if (range !== undefined) {
    return { ...headers, range: `bytes=${job.transfer.partial.doneBytes}-`, 'if-range': range };
  }
  const { etag, lastModified } = job.known ?? {};
  return {
    ...headers,
    ...(etag === undefined ? {} : { 'if-none-match': etag }),
    ...(lastModified === undefined ? {} : { 'if-modified-since': lastModified }),
  };
}

/** What `If-Range` takes: a strong ETag, else a date. A weak ETag promises the meaning of a file, not its bytes. */
function rangeValidator({ etag, lastModified }: Validators): string | undefined {
  return etag !== undefined && !etag.startsWith('W/') ? etag : lastModified;
}

function validatorsOf(response: Response): Validators {
  const etag = header(response, 'etag');
  const lastModified = header(response, 'last-modified');
  return { ...(etag === undefined ? {} : { etag }), ...(lastModified === undefined ? {} : { lastModified }) };
}

function lengthOf(response: Response): number | undefined {
  const text = header(response, 'content-length');
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

function header(response: Response, name: string): string | undefined {
  const value = response.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

async function discard(response: Response): Promise<void> {
  // Small answers are read to their end, so that the connection can be used again; others are cut.
  await response.body.dump({ limit: 64 * 1024 }).catch(() => undefined);
}

/** Undici takes no user info in an address, and neither must a proxy's log. */
function bare(url: URL): URL {
  const plain = new URL(url);
  plain.username = '';
  plain.password = '';
  plain.hash = '';
  return plain;
}

function credentials(url: URL): Readonly<Record<string, string>> {
  if (url.username === '') return {};
  const pair = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  return { authorization: `Basic ${Buffer.from(pair).toString('base64')}` };
}

/** An address as it may be logged: without password and query, which may be a signature. */
export function shownUrl(url: string): string {
  if (!URL.canParse(url)) return url;
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}

/** Our own disk's troubles: asking the server again changes nothing about them. */
function isOurs(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT', 'EIO', 'EROFS'].includes(systemCode(error) ?? '');
}

const amount = (done: number, total: number | undefined): string =>
  total === undefined ? formatBytes(done) : `${done} of ${total} bytes`;
