/** The part of the package that we use; it comes without types. */
declare module 'fs-native-extensions' {
  /** An exclusive lock of the whole file that belongs to this open file; false: somebody else has it. */
  export function tryLock(fd: number): boolean;
  export function unlock(fd: number): void;
}
