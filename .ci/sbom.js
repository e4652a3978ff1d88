// Prints what runs in production as a CycloneDX bill of materials: `npm run sbom > sbom.json`. It is made from the
// lockfile alone, so that it is the same on every machine.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const MANIFESTS = [
  'package.json',
  ...['packages', 'packages/adapters']
    .flatMap((parent) => readdirSync(join(ROOT, parent)).map((name) => `${parent}/${name}/package.json`))
    .filter((path) => existsSync(join(ROOT, path))),
]

const read = (path) => JSON.parse(readFileSync(join(ROOT, path), 'utf8'))
const directory = mkdtempSync(join(tmpdir(), 'annals-sbom-'))
const write = (path, content) => {
  mkdirSync(dirname(join(directory, path)), { recursive: true })
  writeFileSync(join(directory, path), JSON.stringify(content))
}
/** What a package needs at run time. The console is built of what it needs for development, its tools and types aside. */
function shippedBy({ name, dependencies, devDependencies }) {
  if (name !== '@annals/console') return dependencies
  const entries = Object.entries(devDependencies)
  return Object.fromEntries(entries.filter(([dependency]) => !/^@types\/|vite/.test(dependency)))
}

function npm(...args) {
  const options = { cwd: directory, encoding: 'utf8', maxBuffer: 64 << 20 }
  return execFileSync('npm', [...args, '--package-lock-only', '--loglevel=error'], options)
}

try {
  // With --omit=dev, npm leaves out what development needs as well, such as the driver: so it is shown a workspace
  // that needs nothing for development.
  const lock = read('package-lock.json')
  for (const path of MANIFESTS) {
    // What an adapter is beside, its user has.
    const shipped = { dependencies: shippedBy(read(path)), devDependencies: {}, peerDependencies: {} }
    write(path, { ...read(path), ...shipped, scripts: {} })
    Object.assign(lock.packages[path === 'package.json' ? '' : dirname(path)], shipped)
  }
  write('package-lock.json', lock)
  npm('prune', '--offline', '--ignore-scripts', '--no-audit')
  const bill = JSON.parse(npm('sbom', '--sbom-format=cyclonedx'))
  const { timestamp: _timestamp, tools: _tools, ...metadata } = bill.metadata
  const { serialNumber: _serialNumber, ...rest } = bill
  metadata.component.name = 'annals-workspace'
  // A package of the workspace is listed by the name of its folder.
  for (const component of rest.components)
    component.name = decodeURIComponent(/^pkg:npm\/(.+)@/.exec(component.purl)[1])
  process.stdout.write(`${JSON.stringify({ ...rest, metadata }, null, 2)}\n`)
} finally {
  rmSync(directory, { recursive: true })
}
