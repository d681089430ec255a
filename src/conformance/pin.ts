/**
 * Pins an implementation to its contract at compile time, exactly.
 *
 * Assignability is too kind for a contract: a function with fewer parameters is assignable (so a dropped `AbortSignal`
 * passes), one that returns `Promise<never>` or fewer cases of a union is assignable, and with method syntax a narrowed
 * parameter is too. A pin compares each member's parameters and its return as identical types, in both directions.
 * An implementation may have more members than its contract.
 *
 * Types only: nothing of this file exists at run time. test/types/pins.ts holds what each drift must do.
 */

/**
 * `true` where both types are identical, `false` otherwise. `any` is identical with itself alone.
 *
 * Two generic functions are assignable only if their conditional types are identical, and those are identical only if
 * the types they ask about are: the one place where the compiler compares without variance.
 */
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the T is the whole trick
export type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/**
 * Compiles only for `true`. Give it a {@link Pin}; the type error of a drift is the sentence that names the member.
 *
 * @example
 * ```ts
 * import type { Provisioner } from '@eitri/core/contracts';
 * import type { Expect, Pin } from '@eitri/conformance';
 *
 * export type Pinned = Expect<Pin<Provisioner, MyProvisioner>>;
 * // error: Type '"shutdown takes 2 parameters where the contract has 3"' does not satisfy the constraint 'true'.
 * ```
 */
export type Expect<T extends true> = T;

/**
 * `true` where `Implementation` has every member of `Contract` with identical parameters and an identical return; else a
 * union of sentences, one for each member that drifted (the compiler's error shows the first of several).
 *
 * @typeParam Contract - An interface of `@eitri/core/contracts`.
 * @typeParam Implementation - A class's instance type, or the type of an object (`typeof provisioner`).
 */
export type Pin<Contract, Implementation> = [Drift<Contract, Implementation>] extends [never]
  ? true
  : Drift<Contract, Implementation>;

/** A sentence for each member that drifted; `never` where none did. */
export type Drift<Contract, Implementation> = {
  [Name in keyof Contract & string]: Name extends keyof Implementation
    ? MemberDrift<Name, Contract[Name], Implementation[Name]>
    : `${Name} is missing`;
}[keyof Contract & string];

type Callable = (...args: never) => unknown;

type MemberDrift<Name extends string, Wanted, Given> = Wanted extends Callable
  ? Given extends Callable
    ? | ParameterDrift<Name, Parameters<Wanted>, Parameters<Given>>
      | ReturnDrift<Name, ReturnType<Wanted>, ReturnType<Given>>
    : undefined extends Given
      ? `${Name} may be absent`
      : `${Name} is not a function`
  : Same<Wanted, Given> extends true
    ? never
    : `${Name} has another type than in the contract`;

type ParameterDrift<Name extends string, Wanted extends readonly unknown[], Given extends readonly unknown[]> =
  Same<Wanted, Given> extends true
    ? never
    : Same<Wanted['length'], Given['length']> extends true
      ? `${Name} takes a parameter of another type than the contract's`
      : `${Name} takes ${Count<Given>} where the contract has ${Count<Wanted>}`;

type Count<Args extends readonly unknown[]> = number extends Args['length']
  ? 'any number of parameters'
  : Args['length'] extends 1
    ? '1 parameter'
    : IsUnion<Args['length']> extends true
      ? 'optional parameters'
      : `${Args['length'] & number} parameters`;

type IsUnion<T, U = T> = [T] extends [never] ? false : T extends U ? ([U] extends [T] ? false : true) : never;

type ReturnDrift<Name extends string, Wanted, Given> =
  Same<Wanted, Given> extends true
    ? never
    : Wanted extends Promise<unknown>
      ? Given extends Promise<unknown>
        ? `${Name} resolves with another type than the contract's`
        : `${Name} returns no promise where the contract does`
      : `${Name} returns another type than the contract's`;
