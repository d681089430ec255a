// Every export of a published package says what it is, and every function of a contract how it is called: an author of a
// plugin sees these comments and nothing else of us. A comment that an import follows belongs to nothing, so a file's head
// is none of its first export's.
// With arguments: looks at these files instead, each as an entry of a package. Exit 1 with one line for each gap.
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const root = fileURLToPath(new URL('..', import.meta.url));
const CONTRACTS = 'src/core/contracts/';
const ENTRIES = [
  ...['contracts', 'kit', 'reconcile'].map((part) => `src/core/${part}/index.ts`),
  'src/protocol/index.ts',
  'src/conformance/index.ts',
];

const asked = process.argv.slice(2);
const entries = asked.length > 0 ? asked : ENTRIES.map((path) => `${root}${path}`);
const program = ts.createProgram(entries, {
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  target: ts.ScriptTarget.ES2022,
  noEmit: true,
  strict: true,
});
const checker = program.getTypeChecker();
const gaps = [];

const documented = (symbol) => ts.displayPartsToString(symbol.getDocumentationComment(checker)).trim() !== '';
const note = (symbol, name, what) => {
  const [declaration] = symbol.declarations ?? [];
  const source = declaration?.getSourceFile();
  const line = source === undefined ? 0 : source.getLineAndCharacterOfPosition(declaration.getStart()).line + 1;
  gaps.push(`${relative(root, source?.fileName ?? '')}:${line}: ${name} ${what}`);
};

/** The functions of an interface: what is read, and by whom it is called, no type can tell. */
const lookAtMembers = (symbol) => {
  for (const declaration of symbol.declarations ?? []) {
    if (!ts.isInterfaceDeclaration(declaration)) continue;
    if (asked.length === 0 && !relative(root, declaration.getSourceFile().fileName).startsWith(CONTRACTS)) continue;
    for (const member of declaration.members) {
      const name = member.name?.getText();
      const of = name === undefined ? undefined : checker.getSymbolAtLocation(member.name);
      if (of === undefined || documented(of)) continue;
      if (checker.getTypeOfSymbol(of).getCallSignatures().length > 0) {
        note(of, `${symbol.name}.${name}`, 'has no comment: say when it is called and what its answer promises');
      }
    }
  }
};

for (const entry of entries) {
  const source = program.getSourceFile(entry);
  const module = source && checker.getSymbolAtLocation(source);
  if (module === undefined) {
    gaps.push(`${relative(root, entry)}: exports nothing, or is not there`);
    continue;
  }
  for (const exported of checker.getExportsOfModule(module)) {
    const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported;
    if (!documented(symbol)) note(symbol, exported.name, 'has no comment: say what it is, its shape, units and errors');
    lookAtMembers(symbol);
  }
}

for (const gap of gaps.sort()) console.error(gap);
if (gaps.length > 0) process.exit(1);
