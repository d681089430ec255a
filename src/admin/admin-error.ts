/**
 * A refusal of the operator API: a stable code, a sentence, an HTTP status.
 */
import type { AdminErrorCode, ErrorView } from '@eitri/protocol';

const STATUS: Readonly<Record<AdminErrorCode, number>> = {
  notFound: 404,
  ambiguous: 409,
  notPermitted: 403,
  invalid: 400,
  conflict: 409,
  unavailable: 409,
  busy: 503,
  internal: 500,
};

export class AdminError extends Error {
  readonly status: number;

  constructor(
    readonly code: AdminErrorCode,
    message: string,
  ) {
    super(message);
    this.status = STATUS[code];
  }

  get view(): ErrorView {
    return { error: { code: this.code, message: this.message } };
  }
}
