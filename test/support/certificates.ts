/**
 * A certificate authority of the test's own, and a certificate for this host's loopback address under it. By openssl, which
 * every host of the tests has; valid for a day, and gone with the test's folder.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Certificates {
  /** The authority, as NODE_EXTRA_CA_CERTS takes it. */
  readonly authority: string;
  readonly key: Buffer;
  readonly cert: Buffer;
}

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

export function makeCertificates(folder: string): Certificates {
  const at = (name: string): string => join(folder, name);
  const openssl = (...args: readonly string[]): void => {
    execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });
  };
  const authority = ['-subj', '/CN=eitri test authority', '-keyout', at('ca.key'), '-out', at('ca.pem')];
  openssl('req', '-x509', '-days', '1', ...NEW_KEY, ...authority);
  openssl('req', ...NEW_KEY, '-subj', '/CN=127.0.0.1', '-keyout', at('server.key'), '-out', at('server.csr'));
  writeFileSync(at('names'), 'subjectAltName=IP:127.0.0.1\n');
  const signed = ['-CA', at('ca.pem'), '-CAkey', at('ca.key'), '-CAcreateserial', '-extfile', at('names')];
  openssl('x509', '-req', '-days', '1', '-in', at('server.csr'), ...signed, '-out', at('server.pem'));
  return { authority: at('ca.pem'), key: readFileSync(at('server.key')), cert: readFileSync(at('server.pem')) };
}
