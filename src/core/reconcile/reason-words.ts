/**
 * Every reason code in words: what it means, who said no, and what an operator does about it. A code without its words
 * does not compile.
 */
import type { ReasonCode } from '../contracts/index.js';

/** A reason code for people. Whole sentences but for `check`. */
export interface ReasonWords {
  readonly meaning: string;
  /** Which cap, check or rule it was. */
  readonly check: string;
  readonly next: string;
}

const CHANGE = 'Mend it in the declaration; a changed one is tried at once.';

/** The words of every reason code. */
export const REASONS: Readonly<Record<ReasonCode, ReasonWords>> = {
  Capacity: {
    meaning: 'What it takes does not fit into what this host offers to VMs.',
    check: 'the admission ledger',
    next: 'Stop or delete another VM, ask for less, or start the agent with a higher limit: it is tried again as soon as something frees.',
  },
  ImageDownloading: {
    meaning: 'Its image is being fetched.',
    check: 'the image cache',
    next: 'Wait; vm events --follow shows how far it is.',
  },
  WaitingRetry: {
    meaning: 'An attempt failed, and the next one has to wait.',
    check: 'the retry backoff',
    next: 'Mend what the error names; to try at once, stop and start it, or change its declaration.',
  },
  RecoveringAfterReboot: {
    meaning: 'It ran when the host went down, and is started again when its turn comes.',
    check: 'the line of those that come up after a reboot',
    next: 'Wait; the oldest come first, a few at a time.',
  },
  Throttled: {
    meaning: 'As many VMs as allowed are at such work already.',
    check: 'the limit of works at a time',
    next: 'Wait, or start the agent with a higher --max-concurrent-creates.',
  },
  ImageNotFound: {
    meaning: 'Its image is not there, or may not be fetched.',
    check: 'the image cache',
    next: 'Check spec.image, and that this host reaches it; then stop and start it.',
  },
  ImageDigestMismatch: {
    meaning: 'What was fetched is not the image that was declared.',
    check: 'the digest of the image',
    next: 'Correct the digest, or find out who changed the image: it was thrown away.',
  },
  ImageUnsupported: {
    meaning: 'Its image is of a kind that is not taken: damaged, encrypted, or built on other files.',
    check: 'the check of the image',
    next: 'Convert it to a plain raw or qcow2 image, and declare that one.',
  },
  DiskTooSmall: {
    meaning: 'The declared root disk is smaller than its image.',
    check: 'the size of the image',
    next: 'Declare a larger spec.disk, or none.',
  },
  SpecInvalid: {
    meaning: 'Something that is declared can not be had: on this backend, or in the life of this VM.',
    check: "the backend's capabilities and the rules for changes",
    next: CHANGE,
  },
  NetworkFailed: {
    meaning: 'Its network could not be set up.',
    check: 'the network plugin',
    next: 'See what eitri-agent doctor says of the network; it is tried again by itself.',
  },
  PortTaken: {
    meaning: 'A port of the host that it publishes is in use by somebody else.',
    check: 'the ports of this host',
    next: 'Free the port, or declare another spec.exposures hostPort; a busy one is tried again by itself.',
  },
  VmmFailed: {
    meaning: 'Its hypervisor could not be started, or ended at once.',
    check: 'the backend',
    next: 'Read what the hypervisor said last; vm logs --vmm has all of it.',
  },
  BackendMissing: {
    meaning: 'It was made by another backend, and only that one may act on it.',
    check: 'the backend of its record',
    next: 'Start the agent with that backend, or delete the VM there.',
  },
  AttemptsExhausted: {
    meaning: 'It failed as often as it is tried.',
    check: 'the number of attempts',
    next: 'Mend what the error names; then stop and start it, or change its declaration.',
  },
  CrashLooping: {
    meaning: 'Its guest keeps ending, so it is started again ever more slowly.',
    check: 'the crash-loop backoff',
    next: 'Read the end of its console, and what its hypervisor said; to start it at once, stop and start it.',
  },
  RestartRequired: {
    meaning: 'What changed in its declaration holds from its next start on.',
    check: 'the rules for changes',
    next: 'Stop and start it when it suits its users.',
  },
  ShelvedTombstoned: {
    meaning: 'It was deleted; its disk is kept until the tombstone grace ends.',
    check: '--tombstone-grace',
    next: 'To have it back: vm undelete, before the grace ends.',
  },
  ShelvedVanished: {
    meaning: 'Its declaration went away without a deletion, so it is left as it is until the vanish grace ends.',
    check: '--vanish-grace',
    next: 'Declare it again to keep it; delete it to be rid of it now.',
  },
  HeldMassVanish: {
    meaning: 'Its declaration went away together with many others, which looks like a mistake: all of them are kept.',
    check: 'the brake on mass vanishing',
    next: 'Declare them again, delete them, or say with vm release-holds that it was meant.',
  },
  HeldByOperator: {
    meaning: 'An operator of this host holds it in the state in which it is.',
    check: 'the hold',
    next: 'Take the hold back, or wait until it expires.',
  },
  RecordUnreadable: {
    meaning: 'What the agent remembered of it can not be read, so nothing is done to it, nor under its name.',
    check: 'the check of the records',
    next: 'Put a copy of the record back and restart the agent; docs/state-dir.md says how to give it up.',
  },
  StuckPass: {
    meaning: 'The work on it takes too long and does not end when it is told to.',
    check: '--vm-timeout',
    next: 'Look at what it waits for (a dead disk or mount); restarting the agent harms no guest.',
  },
  Unknown: {
    meaning: 'It could not be found out how it is, so nothing is started and nothing destroyed.',
    check: "the backend's look at its hypervisor",
    next: 'See what the message names; it is looked at again every few seconds.',
  },
};
