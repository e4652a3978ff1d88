import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

/**
 * Makes an empty project that has a package as a stranger would, from local tarballs, with the program of its README:
 *
 *     node release/readme_project.js <folder of the package> <folder of the tarballs> <folder of the project>
 *
 * A package without a program is imported. Frameworks have the versions that the tests have.
 */
const ROOT = fileURLToPath(new URL('..', import.meta.url))
const [folder, packs, project] = process.argv.slice(2)
const read = (...path) => JSON.parse(readFileSync(join(ROOT, ...path), 'utf8'))
const ours = new Map(
  ['packages', 'packages/adapters']
    .flatMap((parent) => readdirSync(join(ROOT, parent)).map((name) => join(parent, name, 'package.json')))
    .filter((path) => ts.sys.fileExists(join(ROOT, path)))
    .map((path) => read(path))
    .map((manifest) => [manifest.name, manifest]),
)

const { name } = read(folder, 'package.json')
const readme = readFileSync(join(ROOT, folder, 'README.md'), 'utf8')
const snippets = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, snippet]) => snippet)
const code = snippets.length > 0 ? snippets.join('\n') : `import '${name}'`
const compilerOptions = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext }

const dependencies = {}
for (const [, imported] of code.matchAll(/(?:from|import) '([^']+)'/g)) add(packageOf(imported))
mkdirSync(project, { recursive: true })
// What frameworks bring along for services that nobody here talks to is left out, as in the tests.
const manifest = { private: true, type: 'module', dependencies, overrides: read('package.json').overrides }
writeFileSync(join(project, 'package.json'), JSON.stringify(manifest))
writeFileSync(join(project, 'program.mjs'), ts.transpileModule(code, { compilerOptions }).outputText)

/** Of ours, what it depends on as well: a registry would have that. */
function add(dependency) {
  if (dependency in dependencies || dependency.startsWith('node:')) return
  const own = ours.get(dependency)
  if (own === undefined) dependencies[dependency] = read('node_modules', dependency, 'package.json').version
  else {
    const tarball = `${dependency.replace('@', '').replace('/', '-')}-${own.version}.tgz`
    dependencies[dependency] = `file:${join(packs, tarball)}`
    for (const one of Object.keys(own.dependencies ?? {})) if (ours.has(one)) add(one)
  }
}

function packageOf(imported) {
  return imported.split('/', imported.startsWith('@') ? 2 : 1).join('/')
}
