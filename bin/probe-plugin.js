// Imports the entry of a plugin and prints, as its last line, what that exports as `backend`. Started by src/backends/probe.ts.
import { argv, exit, stdout } from 'node:process';

const verdict = await import(argv[2]).then(
  ({ backend }) => {
    const { contract, kind, name, create } = Object(backend);
    return { backend: { contract, kind, name, ...(typeof create === 'function' ? { create: true } : {}) } };
  },
  (error) => ({ error: String(error?.message ?? error) }),
);
// What the entry left running must not keep this waiting.
stdout.write(`\n${JSON.stringify(verdict)}\n`, () => exit(0));
