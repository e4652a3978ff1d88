import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { publishSteps } from './plan.js'

/**
 * A release in one command; docs/releasing.md says what it needs.
 *
 *     node release/release.js --image ghcr.io/<owner>/annals             prepares the files, and prints what would be published
 *     node release/release.js --image ghcr.io/<owner>/annals --publish   publishes
 *
 * `--built` packs the build that is there. A release that was interrupted is finished by the same command.
 */
const ROOT = fileURLToPath(new URL('..', import.meta.url))
const DIST = join(ROOT, 'release/dist')
const { values } = parseArgs({
  options: { image: { type: 'string' }, publish: { type: 'boolean' }, built: { type: 'boolean' } },
})
const read = (path) => JSON.parse(readFileSync(join(ROOT, path), 'utf8'))
const { version } = read('package.json')
const manifests = ['packages', 'packages/adapters'].flatMap((folder) =>
  readdirSync(join(ROOT, folder))
    .map((name) => `${folder}/${name}/package.json`)
    .filter((path) => existsSync(join(ROOT, path)))
    .map(read),
)

if (!values.image) fail('Name where the image goes: --image ghcr.io/<owner>/annals.')
if (values.publish) {
  const faults = faultsOf()
  if (faults.length > 0) fail(faults.join('\n'))
}
run(['npm', 'run', '--silent', 'pack', ...(values.built ? ['--', '--built'] : [])], ROOT)
const sbom = `annals-${version}.cdx.json`
writeFileSync(join(DIST, sbom), run(['node', '.ci/sbom.js'], ROOT, 'pipe'))
const files = readdirSync(DIST).sort()
const sums = files.map((file) => `${digestOf(file)}  ${file}\n`).join('')
writeFileSync(join(DIST, 'SHA256SUMS'), sums)
process.stdout.write(sums)

const wheel = files.find((file) => file.endsWith('.whl'))
const steps = publishSteps({
  manifests,
  version,
  image: values.image,
  wheel,
  files: [...files, 'SHA256SUMS'],
})
for (const { what, done, run: words } of steps) {
  process.stdout.write(`\n${what}\n`)
  if (!values.publish) process.stdout.write(`  ${words.join(' ')}\n`)
  else if (done && succeeds(done)) process.stdout.write('  is there already\n')
  else run(words.map(withDigest), DIST)
}
if (!values.publish) process.stdout.write('\nNothing was published: --publish does that.\n')

/** What is missing before anything is published, each as a sentence. */
function faultsOf() {
  const wheelName = /^name = "(.+)"$/m.exec(readFileSync(join(ROOT, 'python/pyproject.toml'), 'utf8'))?.[1]
  return [
    ...(run(['git', 'status', '--porcelain'], ROOT, 'pipe') === '' ? [] : ['The working tree has changes.']),
    ...(succeeds(['git', 'describe', '--exact-match', '--match', `v${version}`])
      ? []
      : [`The commit does not have the tag v${version}.`]),
    ...manifests
      .filter((one) => !one.private && !one.repository)
      .map(({ name }) => `${name} has no field "repository", which provenance needs.`),
    ...(wheelName === 'annals'
      ? ['The name annals on PyPI belongs to another project: change it in python/pyproject.toml.']
      : []),
    ...['npm', 'python3', 'docker', 'cosign', 'gh']
      .filter((program) => !succeeds([program, '--version']) && !succeeds([program, 'version']))
      .map((program) => `There is no ${program} here.`),
  ]
}

function digestOf(file) {
  return createHash('sha256')
    .update(readFileSync(join(DIST, file)))
    .digest('hex')
}

function withDigest(word) {
  if (!word.includes('{digest of image.json}')) return word
  const built = JSON.parse(readFileSync(join(DIST, 'image.json'), 'utf8'))
  return word.replace('{digest of image.json}', built['containerimage.digest'])
}

function succeeds([program, ...args]) {
  return spawnSync(program, args, { cwd: ROOT, stdio: 'ignore' }).status === 0
}

function run([program, ...args], cwd, stdout = 'inherit') {
  const ended = spawnSync(program, args, {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', stdout, 'inherit'],
    maxBuffer: 2 ** 28,
  })
  if (ended.status !== 0) fail(`${program} ${args[0]} failed. The same command goes on from here.`)
  return ended.stdout ?? ''
}

function fail(message) {
  process.stderr.write(`${message}\n`)
  process.exit(1)
}
