/**
 * Randomness, injected so that a simulation can be replayed.
 *
 * Call order: none. Every member may be called at any time, by anybody, and answers at once.
 */
export interface Random {
  /** A new UUID (version 4 form). Never the same twice. */
  readonly uuid: () => string;
  /** A number in [0, 1). */
  readonly fraction: () => number;
  /** So many bytes of a generator that is fit for keys: nobody who knows some of them can tell the next. */
  readonly secretBytes: (count: number) => Uint8Array;
}
