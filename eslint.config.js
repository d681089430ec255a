import js from '@eslint/js';
import { defineConfig } from 'eslint/config';
import tseslint from 'typescript-eslint';

/** Every restriction says what it protects: a rule without a reason gets switched off by the next person in a hurry. */
const noEnum = {
  selector: 'TSEnumDeclaration',
  message: 'an enum is a type and a value at once and differs between two copies of a package: use a union of strings',
};
const noDefaultExport = {
  selector: 'ExportDefaultDeclaration',
  message:
    'a default export has another name in every file that imports it: export by name (oclif alone needs defaults)',
};
const unfinishedTests = {
  selector:
    'MemberExpression[object.name=/^(describe|it|test|suite|bench)$/][property.name=/^(skip|only|todo|skipIf|runIf|fails)$/]',
  message: 'a test that does not run holds nothing, and reads as green: make it run or remove it',
};

const waitForALevel =
  'a time that is long enough here is too short on a busy machine, and lost on a quiet one: wait for a level (test/support/until.ts)';
const sleepGlobals = ['setTimeout', 'setInterval'].map((name) => ({ name, message: waitForALevel }));
const sleepImports = ['node:timers', 'node:timers/promises', 'timers', 'timers/promises'].map((name) => ({
  name,
  message: waitForALevel,
}));

const injectIt = 'below src/app time, randomness, platform and environment are injected, so that a test can set them';
const ambientProperties = [
  { object: 'Date', property: 'now', message: `${injectIt}: take a Clock` },
  { object: 'performance', property: 'now', message: `${injectIt}: take a Clock` },
  { object: 'Math', property: 'random', message: `${injectIt}: take a source of randomness` },
  { object: 'process', property: 'env', message: `${injectIt}: read it in src/app and hand it down` },
  { object: 'process', property: 'platform', message: `${injectIt}: take the Platform contract` },
  { object: 'process', property: 'arch', message: `${injectIt}: take the Platform contract` },
  { object: 'os', property: 'platform', message: `${injectIt}: take the Platform contract` },
  { object: 'os', property: 'arch', message: `${injectIt}: take the Platform contract` },
  ...['setTimeout', 'setInterval'].map((property) => ({
    object: 'globalThis',
    property,
    message: `${injectIt}: sleep through a Clock, with a signal`,
  })),
];
const ambientGlobals = ['setTimeout', 'setInterval'].map((name) => ({
  name,
  message: `${injectIt}: sleep through a Clock, with a signal`,
}));
const ambientSyntax = [
  { selector: "NewExpression[callee.name='Date'][arguments.length=0]", message: `${injectIt}: take a Clock` },
  { selector: "CallExpression[callee.name='Date']", message: `${injectIt}: take a Clock` },
];
const ambientImports = [
  { name: 'node:timers', message: `${injectIt}: sleep through a Clock, with a signal` },
  { name: 'node:timers/promises', message: `${injectIt}: sleep through a Clock, with a signal` },
  {
    name: 'node:process',
    importNames: ['env', 'platform', 'arch'],
    message: `${injectIt}: take the contract, or read it in src/app`,
  },
  { name: 'node:os', importNames: ['platform', 'arch'], message: `${injectIt}: take the Platform contract` },
  {
    name: 'node:crypto',
    importNames: ['randomBytes', 'randomUUID', 'randomInt', 'randomFillSync', 'getRandomValues', 'webcrypto'],
    message: `${injectIt}: take the Random contract`,
  },
];
const registryDecorators = {
  name: 'tsyringe',
  importNames: ['singleton', 'scoped', 'registry', 'autoInjectable'],
  message:
    'these write into the global container on import: one agent per process would be built in, and tests would share it',
};
const folderImports = ['node:fs', 'node:fs/promises'].map((name) => ({
  name,
  importNames: ['mkdtemp', 'mkdtempSync', 'mkdtempDisposable', 'mkdtempDisposableSync'],
  message: 'a folder that nobody is sure to remove fills /tmp: take tempFolder or sharedFolder of test/support/temp.ts',
}));
const containerCalls = {
  name: 'tsyringe',
  importNames: ['container', ...registryDecorators.importNames],
  message: 'only src/app and src/backends compose: a room that resolves things itself hides what it depends on',
};

export default defineConfig(
  {
    ignores: ['**/dist/**', 'coverage/**', '.cache/**', 'test/fixtures/**', 'test/golden/**'],
  },
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  js.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: {
      parserOptions: {
        projectService: { allowDefaultProject: ['vitest.config.ts'], defaultProject: 'test/tsconfig.json' },
        tsconfigRootDir: import.meta.dirname,
      },
    },
    rules: {
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/no-import-type-side-effects': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true, requireDefaultForNonUnion: true },
      ],
      '@typescript-eslint/no-floating-promises': ['error', { ignoreVoid: false }],
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-non-null-assertion': 'error',
      // The only underscores here: a parameter that a contract demands and this implementation has no use for. The exact
      // pins forbid to leave it out.
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_$', ignoreRestSiblings: true },
      ],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/no-extraneous-class': 'off',
      '@typescript-eslint/dot-notation': 'off',
      eqeqeq: 'error',
      'no-console': 'error',
      'no-restricted-syntax': ['error', noEnum, noDefaultExport],
      'no-restricted-imports': ['error', { paths: [registryDecorators] }],
    },
  },
  {
    // Nothing of the floors above src/app may be ambient; src/host is the room that touches this machine.
    files: ['src/**/*.ts', 'plugins/*/src/**/*.ts', 'server/**/*.ts'],
    ignores: ['src/app/**', 'src/commands/**', 'src/hooks/**', 'src/host/**'],
    rules: {
      'no-restricted-properties': ['error', ...ambientProperties],
      'no-restricted-globals': ['error', ...ambientGlobals],
      'no-restricted-syntax': ['error', noEnum, noDefaultExport, ...ambientSyntax],
    },
  },
  {
    files: ['src/**/*.ts', 'plugins/*/src/**/*.ts', 'server/**/*.ts'],
    ignores: ['src/app/**', 'src/commands/**', 'src/hooks/**', 'src/host/**', 'src/backends/**'],
    rules: {
      'no-restricted-imports': ['error', { paths: [containerCalls, ...ambientImports] }],
    },
  },
  {
    files: ['src/host/**/*.ts', 'src/commands/**/*.ts', 'src/hooks/**/*.ts'],
    rules: { 'no-restricted-imports': ['error', { paths: [containerCalls] }] },
  },
  {
    files: ['src/backends/**/*.ts'],
    rules: { 'no-restricted-imports': ['error', { paths: [registryDecorators, ...ambientImports] }] },
  },
  {
    // Methods are compared bivariantly: an implementation that takes less than its contract promises would compile.
    files: ['src/core/contracts/**/*.ts'],
    rules: { '@typescript-eslint/method-signature-style': ['error', 'property'] },
  },
  {
    files: ['src/commands/**/*.ts', 'src/hooks/**/*.ts'],
    rules: { 'no-restricted-syntax': ['error', noEnum], 'no-console': 'off' },
  },
  {
    files: ['test/**/*.ts', 'bench/**/*.ts'],
    rules: {
      'no-restricted-syntax': ['error', noEnum, noDefaultExport, unfinishedTests],
      'no-restricted-imports': ['error', { paths: [registryDecorators] }],
    },
  },
  {
    // The one place that sleeps, between two looks; what else is a clock says so where it disables the rule.
    files: ['test/**/*.ts'],
    ignores: ['test/support/until.ts'],
    rules: {
      'no-restricted-globals': ['error', ...sleepGlobals],
      'no-restricted-properties': [
        'error',
        ...sleepGlobals.map(({ name, message }) => ({ object: 'globalThis', property: name, message })),
      ],
      'no-restricted-imports': ['error', { paths: [registryDecorators, ...sleepImports, ...folderImports] }],
    },
  },
  {
    // Where folders are made for tests; the rest of the rule above holds here, too.
    files: ['test/support/temp.ts', 'test/support/run-folder.ts'],
    rules: { 'no-restricted-imports': ['error', { paths: [registryDecorators, ...sleepImports] }] },
  },
  {
    // @ts-expect-error is what the types lane is made of; the sentence above each case gives the reason.
    files: ['test/types/**/*.ts'],
    rules: {
      '@typescript-eslint/ban-ts-comment': 'off',
      '@typescript-eslint/no-unused-vars': 'off',
      '@typescript-eslint/consistent-type-imports': 'off',
    },
  },
  { files: ['*.config.ts'], rules: { 'no-restricted-syntax': ['error', noEnum] } },
  {
    files: ['**/*.js', '**/*.cjs', '**/*.mjs'],
    languageOptions: {
      globals: {
        ...{ process: 'readonly', console: 'readonly', URL: 'readonly', Buffer: 'readonly', module: 'writable' },
        ...{ AbortController: 'readonly', fetch: 'readonly', performance: 'readonly' },
      },
    },
  },
);
