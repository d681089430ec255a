/**
 * Durations as operators write them: `90s`, `5m`, `1h30m`, `500ms`, and a bare `0`.
 */
const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** Milliseconds; undefined: not a duration. A bare number other than 0 is none: its unit would be a guess. */
export function parseDuration(text: string): number | undefined {
  const trimmed = text.trim();
  if (trimmed === '0') return 0;
  if (!/^(\d+(\.\d+)?(ms|s|m|h))+$/.test(trimmed)) return undefined;
  let total = 0;
  for (const [, number = '', , unit = ''] of trimmed.matchAll(/(\d+(\.\d+)?)(ms|s|m|h)/g)) {
    total += Number(number) * (UNIT_MS[unit] ?? 0);
  }
  return Number.isSafeInteger(Math.round(total)) ? Math.round(total) : undefined;
}

/** `5m`, `1h30m`, `1.5s`: the form that parses back to the same. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return ms === 0 ? '0' : `${ms}ms`;
  const hours = Math.floor(ms / 3_600_000);
  const minutes = Math.floor((ms % 3_600_000) / 60_000);
  const seconds = (ms % 60_000) / 1_000;
  return [hours > 0 ? `${hours}h` : '', minutes > 0 ? `${minutes}m` : '', seconds > 0 ? `${seconds}s` : ''].join('');
}
