/**
 * Which room may open which door. docs/architecture.md draws it; here it is enforced, with the reason in each message.
 * Every rule of a room says what it MAY import, and all else of ours is an error, so a new room is closed until somebody
 * opens a door for it here. What is imported by package name (`@eitri/core/kit`) resolves to its sources, see `alias`.
 */
const CORE = '^src/core/';
const PROTOCOL = '^src/protocol/';
const BASE = [CORE, PROTOCOL];
const HOST = '^src/host/';
const STATE = '^src/state/';
const GROUND = [HOST, STATE, ...BASE];

/** What a path of this repository looks like; node built-ins and packages of others are every room's own matter. */
const OURS = '^(src|plugins|server|bench|test|bin|scripts)/|^@eitri/|^node_modules/@eitri/';

const BUILT = '^dist/|^src/(core|protocol|conformance)/dist/|^plugins/[^/]+/dist/|^server/dist/';

const exactly = (folder) => `^${folder.replaceAll('/', '\\/')}/`;

/** @param {string} folder @param {string[]} allowed @param {string} reason */
const room = (folder, allowed, reason) => ({
  name: `room-${folder.replace(/^src\//, '').replaceAll('/', '-')}`,
  comment: reason,
  severity: 'error',
  from: { path: exactly(folder) },
  to: { path: OURS, pathNot: [exactly(folder), ...allowed] },
});

const byContract =
  'a room sees its neighbours through contracts alone, so that each can be tested and replaced by itself';

const rooms = [
  room(
    'src/core/contracts',
    [],
    'contracts are what everybody leans on: they see nothing, or a plugin author would need it too',
  ),
  room(
    'src/core/kit',
    ['^src/core/contracts/'],
    'the kit is pure helpers over node built-ins: it may name what contracts name (ids, brands), and knows no engine',
  ),
  room(
    'src/core/reconcile',
    ['^src/core/(contracts|kit)/'],
    'the engine decides from contracts alone, so that it runs in a simulation as it runs on a host',
  ),
  room('src/protocol', [CORE], 'the wire is shared with the control plane: it must not pull in the agent'),
  room('src/conformance', [CORE], 'a suite judges any backend by the contracts: it must not know one of ours'),
  room('src/host', BASE, 'host touches this machine and nothing else of ours: everything above may lean on it'),
  room(
    'src/state',
    ['^src/host/atomic-file\\.ts$', ...BASE],
    'state owns the layout on disk; of host it takes only the one way by which a file is written whole',
  ),
  room('src/desired', GROUND, `desired is the one door for admin and control and knows neither; ${byContract}`),
  room('src/images', GROUND, byContract),
  room('src/disks', GROUND, byContract),
  room('src/seed', GROUND, byContract),
  room('src/console', GROUND, byContract),
  room('src/expose', GROUND, byContract),
  room('src/bootstrap', GROUND, byContract),
  room('src/backends', GROUND, `backends loads plugins by their package name, at run time; ${byContract}`),
  room(
    'src/control',
    ['^src/desired/', ...GROUND],
    `of its floor control sees only desired, the one door to what shall be; ${byContract}`,
  ),
  room(
    'src/admin',
    ['^src/desired/', ...GROUND],
    `of its floor admin sees only desired, the one door to what shall be; ${byContract}`,
  ),
  room(
    'src/client',
    BASE,
    'the client speaks to a running agent over its socket: it must not reach into that agent’s rooms or state',
  ),
  room(
    'src/app',
    ['^src/(admin|control|desired|images|disks|seed|console|expose|bootstrap|backends)/', ...GROUND],
    'app composes the agent’s rooms; it is not a client of itself, and knows no command and no plugin by name',
  ),
  room(
    'src/commands',
    ['^src/(client|app)/', ...BASE],
    'a command parses, calls client or app, and prints: what it did by itself no API could do',
  ),
  room(
    'src/hooks',
    ['^src/backends/', ...BASE],
    'a hook runs at every start of every command: it sees the plugin catalog and no more',
  ),
];

/** Places that may import anything of ours. */
const FREE = ['^test/', '^bench/', '^scripts/', '^bin/', '^[^/]+\\.config\\.(ts|js)$', '^\\.dependency-cruiser\\.cjs$'];
const PLACED = [
  ...[
    'core/contracts',
    'core/kit',
    'core/reconcile',
    'protocol',
    'conformance',
    'host',
    'state',
    'desired',
    'images',
    'disks',
    'seed',
    'console',
    'expose',
    'bootstrap',
    'backends',
    'control',
    'admin',
    'client',
    'app',
    'commands',
    'hooks',
  ].map((name) => exactly(`src/${name}`)),
  '^plugins/[^/]+/src/',
  '^server/',
  ...FREE,
];

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: 'no-unplaced-file',
      comment:
        'no rule says what this file may import: put it into a room, or give its room a rule here and a line in CONTRIBUTING.md',
      severity: 'error',
      from: { path: '.', pathNot: [...PLACED, '(^|/)node_modules/', BUILT] },
      to: {},
    },
    {
      // A module without any import never is a `from`: only `orphan` sees it.
      name: 'no-unplaced-orphan',
      comment:
        'no rule says what this file may import: put it into a room, or give its room a rule here and a line in CONTRIBUTING.md',
      severity: 'error',
      from: { orphan: true, path: '.', pathNot: [...PLACED, '(^|/)node_modules/', BUILT] },
      to: {},
    },
    {
      name: 'no-circular',
      comment: 'modules in a circle cannot be understood, tested or initialised one at a time',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'no-unresolvable',
      comment: 'an import that resolves to nothing escapes every other rule here, and fails at run time',
      severity: 'error',
      // bin/ imports the build, which a lint does not need to exist.
      from: { pathNot: '^bin/' },
      to: { couldNotResolve: true },
    },
    {
      name: 'no-undeclared-package',
      comment: 'a package that no package.json declares is there by luck of hoisting and gone on a host',
      severity: 'error',
      from: { path: '^(src|plugins|server)/' },
      to: { dependencyTypes: ['npm-no-pkg', 'npm-unknown'] },
    },
    {
      name: 'no-dev-package',
      comment: 'a development dependency is not on the host: what ships may only use its types',
      severity: 'error',
      from: { path: '^(src|plugins|server)/' },
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'], pathNot: ['^node_modules/@types/'] },
    },
    ...rooms,
    {
      name: 'core-stays-small',
      comment: 'a plugin author installs core beside the plugin: whatever core imports, every plugin carries',
      severity: 'error',
      from: { path: CORE },
      to: {
        dependencyTypes: ['npm', 'npm-dev', 'npm-optional', 'npm-peer'],
        pathNot: ['node_modules/(tsyringe|reflect-metadata)/'],
      },
    },
    {
      name: 'core-by-package-name',
      comment:
        'core, protocol and conformance are packages: a relative path into them works in the checkout and breaks when published',
      severity: 'error',
      from: { path: '^(src|plugins|server)/', pathNot: ['^src/(core|protocol|conformance)/'] },
      to: { path: '^src/(core|protocol|conformance)/', dependencyTypes: ['local'], dependencyTypesNot: ['aliased'] },
    },
    {
      name: 'contracts-know-no-package',
      comment:
        'a contract is types and tokens: with a package in it, both sides would have to agree on that package’s version',
      severity: 'error',
      from: { path: '^src/core/contracts/' },
      to: { path: '(^|/)node_modules/' },
    },
    {
      name: 'plugin-sees-contract-types',
      comment:
        'two copies of core meet in one process when a plugin is installed: types cannot clash, values can. A plugin takes what it needs from the host object it is given',
      severity: 'error',
      from: { path: '^plugins/' },
      to: { path: '^src/core/contracts/|^@eitri/core/contracts', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'plugin-sees-contracts-only',
      comment: 'a plugin of a third party has nothing but the contracts: ours must show that this is enough',
      severity: 'error',
      from: { path: '^plugins/([^/]+)/' },
      to: { path: OURS, pathNot: ['^plugins/$1/', '^src/core/contracts/'] },
    },
    {
      name: 'plugin-knows-no-plugin',
      comment:
        'a backend and its network are chosen apart by the operator: a plugin that imports another ends that choice',
      severity: 'error',
      from: { path: '^plugins/([^/]+)/' },
      to: { path: '^plugins/|@eitri/plugin-', pathNot: ['^plugins/$1/'] },
    },
    {
      name: 'nobody-imports-a-plugin',
      comment: 'the agent finds plugins in its catalog at run time: an import would ship one to every host',
      severity: 'error',
      from: { path: '^(src|server|bin)/' },
      to: { path: '^plugins/|@eitri/plugin-' },
    },
    {
      name: 'room-server',
      comment: 'the control plane shares the wire with the agent, nothing else',
      severity: 'error',
      from: { path: '^server/', pathNot: ['^server/simulated'] },
      to: { path: OURS, pathNot: ['^server/', ...BASE] },
    },
    {
      name: 'server-simulated-hosts',
      comment: 'simulated hosts run the agent as app composes it, or they would simulate something else',
      severity: 'error',
      from: { path: '^server/simulated' },
      to: { path: OURS, pathNot: ['^server/', '^src/app/', ...BASE] },
    },
    {
      name: 'sources-see-no-build',
      comment: 'an import of a build passes with the build of yesterday: import the package by name, or the source',
      severity: 'error',
      from: { path: '^(src|plugins|server|test|bench)/', pathNot: [BUILT] },
      to: { path: BUILT },
    },
    {
      name: 'nothing-ships-tests',
      comment: 'what ships must not need what only a checkout has',
      severity: 'error',
      from: { path: '^(src|plugins|server|bin)/' },
      to: { path: '^(test|bench|scripts)/' },
    },
    {
      name: 'only-app-and-backends-compose',
      comment:
        'tsyringe elsewhere is for @inject and @injectable (eslint forbids its container there by name); core/contracts, protocol, client, commands, hooks and plugins are not composed and need none of it',
      severity: 'error',
      from: {
        path: ['^src/(core/contracts|core/kit|protocol|conformance|client|commands|hooks)/', '^plugins/', '^server/'],
      },
      to: { path: 'node_modules/tsyringe/' },
    },
  ],
  options: {
    // Not `exclude`d: an excluded target is invisible to every rule, and most packages resolve into a dist of theirs.
    doNotFollow: { path: ['node_modules/', BUILT] },
    exclude: { path: ['^coverage/', '^\\.cache/', '^test/(fixtures|golden)/'] },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.depcruise.json' },
    combinedDependencies: false,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['types', 'import', 'node', 'default'],
      mainFields: ['module', 'main', 'types', 'typings'],
      extensions: ['.ts', '.js', '.mjs', '.cjs', '.d.ts', '.json'],
    },
    reporterOptions: { text: { highlightFocused: true } },
  },
};
