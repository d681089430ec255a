/**
 * Durations as operators write them, in Go's grammar: `90s`, `5m`, `1h30m`, `1.5s`, `500ms`, `100us`, `+5m`, and a bare
 * `0`. A negative one is none: what it would mean is nobody's guess, so `isNegativeDuration` is there to say so by name.
 */
const UNIT_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  // The micro sign and the Greek letter, which look the same.
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
};

const PART = String.raw`(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)`;
const WHOLE = new RegExp(`^(${PART})+$`);
const PARTS = new RegExp(PART, 'g');

/** Milliseconds; undefined: not a duration. A bare number other than 0 is none: its unit would be a guess. */
export function parseDuration(text: string): number | undefined {
  const trimmed = text.trim().replace(/^\+/, '');
  if (trimmed === '0' || trimmed === '-0') return 0;
  if (!WHOLE.test(trimmed)) return undefined;
  let total = 0;
  for (const [, number = '', unit = ''] of trimmed.matchAll(PARTS)) total += Number(number) * (UNIT_MS[unit] ?? 0);
  // 0 often means "for ever": a duration that is only short must not become it.
  const rounded = total > 0 ? Math.max(1, Math.round(total)) : 0;
  return Number.isSafeInteger(rounded) ? rounded : undefined;
}

/** Whether a text is a duration but for the minus in front of it. */
export const isNegativeDuration = (text: string): boolean =>
  text.trim().startsWith('-') && parseDuration(text.trim().slice(1)) !== undefined;

/** `5m`, `1h30m`, `1.5s`: the form that parses back to the same. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return ms === 0 ? '0' : `${ms}ms`;
  const hours = Math.floor(ms / 3_600_000);
  const minutes = Math.floor((ms % 3_600_000) / 60_000);
  const seconds = (ms % 60_000) / 1_000;
  return [hours > 0 ? `${hours}h` : '', minutes > 0 ? `${minutes}m` : '', seconds > 0 ? `${seconds}s` : ''].join('');
}
