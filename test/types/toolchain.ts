/**
 * Cases that must not compile: `tsc -p test/types` fails when one of them does, because its @ts-expect-error is then
 * unused. This file pins the compiler settings that the rest of the code leans on.
 */

// verbatimModuleSyntax: a type imported as a value would stay in the output and fail at run time.
// @ts-expect-error
import { Reporter } from 'vitest/node';

export type Imported = Reporter;

interface Strict {
  readonly maybe?: string;
}

// exactOptionalPropertyTypes: absence and undefined are two things.
// @ts-expect-error
export const written: Strict = { maybe: undefined };

// noUncheckedIndexedAccess: a look-up may find nothing.
const words: readonly string[] = [];
// @ts-expect-error
export const first: string = words[0];

interface Contract {
  readonly boot: (spec: { readonly cpus: number }) => number;
}

// A property function's parameter cannot be narrowed by an implementation (method syntax would let it).
export class Narrowed implements Contract {
  // @ts-expect-error
  readonly boot = (spec: { readonly cpus: number; readonly gpu: string }): number => spec.cpus;
}

class Base {
  readonly name: string = 'base';
}

// noImplicitOverride: a renamed base member must not leave a silent stranger behind.
export class Derived extends Base {
  // @ts-expect-error
  readonly name = 'derived';
}
