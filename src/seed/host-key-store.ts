/** The SSH host keys of a guest, as the seed needs them: made once a life, kept in the agent's own part of its folder. */
export interface HostKeyStore {
  /** The key pair of this folder, made at the first call. `privateOpenSsh` is a secret: it goes into the seed only. */
  readonly ensure: (
    keysFolder: string,
    signal: AbortSignal,
  ) => Promise<{ readonly privateOpenSsh: string; readonly publicLine: string }>;
}
