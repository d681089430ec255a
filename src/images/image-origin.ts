/**
 * From an image reference to where its bytes are: an address, or a file of this host. Everything that is wrong with the
 * reference itself is said here, before anything is asked for.
 */
import type { ImageDigest, ImageFormat, ImageRef } from '@eitri/core/contracts';
import { permanent } from '@eitri/core/kit';
import { shownUrl } from './http-download.js';
import { pathOfCatalogName, pathOfFileUrl } from './local-image.js';

/** `url` names it for good, secrets included; `name` is what may be logged. */
export type ImageOrigin =
  | { readonly kind: 'http'; readonly url: string; readonly name: string }
  | { readonly kind: 'file'; readonly url: string; readonly path: string; readonly name: string };

export interface WantedImage {
  readonly origin: ImageOrigin;
  readonly digest: ImageDigest | undefined;
  readonly format: ImageFormat | undefined;
}

const HEX_DIGITS = { sha256: 64, sha512: 128 } as const;

export async function resolveImage(
  ref: ImageRef,
  options: { readonly imageDir?: string; readonly fileUrls?: boolean },
): Promise<WantedImage> {
  if (ref.kind === 'catalog') {
    const path = await pathOfCatalogName(ref.name, options.imageDir);
    return {
      origin: { kind: 'file', url: `file:${path}`, path, name: ref.name },
      digest: undefined,
      format: undefined,
    };
  }
  const { url, digest, format } = ref;
  if (digest !== undefined && !isDigest(digest)) {
    throw invalid(`${JSON.stringify(digest.hex)} is no ${digest.algorithm} in lower-case hex`);
  }
  const said = `the image address ${JSON.stringify(shownUrl(url))}`;
  if (!URL.canParse(url)) throw invalid(`${said} is no URL: write https://… or file:///…`);
  const { protocol } = new URL(url);
  if (protocol === 'http:' || protocol === 'https:') {
    return { origin: { kind: 'http', url, name: shownUrl(url) }, digest, format };
  }
  if (protocol !== 'file:') throw invalid(`${said} has the scheme ${protocol} where https:, http: or file: is wanted`);
  if (options.fileUrls === false) throw invalid(`${said} names a file of this host, which only a local manifest may`);
  const path = pathOfFileUrl(url);
  return { origin: { kind: 'file', url: `file:${path}`, path, name: path }, digest, format };
}

const isDigest = ({ algorithm, hex }: ImageDigest): boolean =>
  hex.length === HEX_DIGITS[algorithm] && /^[0-9a-f]+$/.test(hex);

const invalid = (message: string): Error => permanent(message, { code: 'SpecInvalid' });
