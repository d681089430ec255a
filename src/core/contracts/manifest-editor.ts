import type { PowerState, VmId } from './vm-spec.js';

/** What became of an edit; a refusal is an answer, and leaves the folder as it was. */
export type EditOutcome =
  /** `changed` is false where the folder said so already; `file` is relative to the folder. */
  | {
      readonly kind: 'done';
      readonly changed: boolean;
      readonly edits: readonly { readonly id: VmId; readonly file: string }[];
    }
  | {
      readonly kind: 'refused';
      /**
       * `notFound`: no such document. `invalid`: the text is not a manifest. `conflict`: it stands there already, or a
       * file is in the way. `notEditable`: only by hand.
       */
      readonly reason: 'notFound' | 'invalid' | 'conflict' | 'notEditable';
      /** One line for each thing to mend. */
      readonly why: readonly string[];
    };

/**
 * Changing a folder of manifests on the operator's behalf: the folder itself is edited, never a hidden copy, so what a
 * person reads there is what the agent does. Only local mode has one.
 *
 * Call order: none. Concurrency: all at once; edits are made one after the other. Each resolves when the folder is
 * changed on disk and was read again, so that the desired store already knows. An edit that would change anything else
 * than what it was asked for is refused, and its lines tell the operator which lines to write. Rejects, retryable, only
 * for what is nobody's choice: a full disk, an I/O error. The signal bounds the waiting for a turn, and no write that
 * has begun.
 */
export interface ManifestEditor {
  /** Sets `spec.power` in the VM's document; all other bytes stay. Idempotent. */
  readonly setPower: (id: VmId, power: PowerState, signal: AbortSignal) => Promise<EditOutcome>;
  /** Moves the document to `.deleted/`: the VM's tombstone. Idempotent while the document lies there. */
  readonly remove: (id: VmId, signal: AbortSignal) => Promise<EditOutcome>;
  /** Moves the document back from `.deleted/`. Idempotent while the document stands in the folder. */
  readonly undelete: (id: VmId, signal: AbortSignal) => Promise<EditOutcome>;
  /**
   * Writes the documents of a YAML or JSON text, all or, when one is refused, none. `create` refuses a name that the
   * folder declares; `apply` replaces its document where it stands. A tombstone of the name is taken away.
   */
  readonly write: (text: string, mode: 'create' | 'apply', signal: AbortSignal) => Promise<EditOutcome>;
}
