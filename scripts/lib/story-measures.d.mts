export interface CommandFailure {
  readonly code?: number | string | null;
  readonly signal?: string | null;
  readonly killed?: boolean;
  readonly stderr?: string;
  readonly message?: string;
}
export function howItEnded(failure: CommandFailure, timeoutMs: number): string;
export function fileIdentity(path: string): string | undefined;
export function holdsOpen(pid: number, identity: string | undefined): boolean;
export function leftInRun(folder: string): string[];
export function leftInState(folder: string): string[];
