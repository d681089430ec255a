/**
 * Reading what a tool printed as JSON: checked, never cast. A shape that is not the expected one names the tool.
 */
export type JsonObject = Readonly<Record<string, unknown>>;

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const textOf = (object: JsonObject | undefined, key: string): string | undefined => {
  const value = object?.[key];
  return typeof value === 'string' ? value : undefined;
};

export const numberOf = (object: JsonObject | undefined, key: string): number | undefined => {
  const value = object?.[key];
  return typeof value === 'number' ? value : undefined;
};

export const objectOf = (object: JsonObject | undefined, key: string): JsonObject | undefined => {
  const value = object?.[key];
  return isObject(value) ? value : undefined;
};

export const wordsOf = (object: JsonObject | undefined, key: string): readonly string[] => {
  const value = object?.[key];
  return Array.isArray(value) ? value.filter((word): word is string => typeof word === 'string') : [];
};

/** A list of objects, as `ip -json` prints; nothing at all means an empty one. Undefined: something else. */
export function parseList(text: string): readonly JsonObject[] | undefined {
  if (text.trim() === '') return [];
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  return Array.isArray(value) && value.every(isObject) ? value : undefined;
}
