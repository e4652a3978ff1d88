import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

interface Component {
  'bom-ref': string
  type: string
  name: string
  version: string
  purl: string
  hashes?: { alg: string; content: string }[]
}
interface Bill {
  bomFormat: string
  specVersion: string
  metadata: { component: Component }
  components: Component[]
  dependencies: { ref: string; dependsOn: string[] }[]
}

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const read = (path: string) => JSON.parse(readFileSync(`${ROOT}/${path}`, 'utf8'))
const print = () =>
  execFileSync('node', ['.ci/sbom.js'], { cwd: ROOT, encoding: 'utf8', maxBuffer: 64 << 20 })

const text = print()
const bill = JSON.parse(text) as Bill
const names = new Set(bill.components.map(({ name }) => name))

describe('the bill of materials', () => {
  it('is CycloneDX: each package once, with a version, an address and a digest, and what needs what', () => {
    expect([bill.bomFormat, bill.specVersion]).toEqual(['CycloneDX', expect.stringMatching(/^1\.[5-9]$/)])
    const refs = bill.components.map((component) => component['bom-ref'])
    expect(new Set(refs).size).toBe(refs.length)
    for (const { type, version, purl, hashes, name } of bill.components) {
      expect([type, purl]).toEqual(['library', `pkg:npm/${name.replace('@', '%40')}@${version}`])
      if (!name.includes('annals')) expect(hashes?.[0], name).toMatchObject({ alg: 'SHA-512' })
    }
    const known = new Set([...refs, bill.metadata.component['bom-ref']])
    for (const { ref, dependsOn } of bill.dependencies)
      for (const one of [ref, ...dependsOn]) expect([...known]).toContain(one)
  })

  it('has what packages need at run time, in the version that is locked, and what the console is built of', () => {
    const lock = read('package-lock.json').packages as Record<string, { version: string }>
    const folders = readdirSync(`${ROOT}/packages`).filter((name) => name !== 'adapters')
    const needed = folders.flatMap((name) => {
      const { dependencies, optionalDependencies } = read(`packages/${name}/package.json`)
      return Object.keys({ ...dependencies, ...optionalDependencies }).map((one) => [name, one] as const)
    })
    expect(needed).toContainEqual(['server', 'pg'])
    const drawn = ['react-dom', 'markdown-it'].map((one) => ['console', one] as const)
    for (const [folder, name] of [...needed, ...drawn].filter(([, name]) => !name.includes('annals'))) {
      // A package may need another version than the others have.
      const locked = lock[`packages/${folder}/node_modules/${name}`] ?? lock[`node_modules/${name}`]!
      const versions = bill.components.filter((component) => component.name === name)
      expect(
        versions.map(({ version }) => version),
        name,
      ).toContain(locked.version)
    }
  })

  it('has nothing that only development needs', () => {
    for (const name of ['vitest', 'vite', '@biomejs/biome', 'typescript', 'fast-check', '@types/react'])
      expect([...names]).not.toContain(name)
  })

  it('is the same each time that it is made', () => {
    expect(print()).toBe(text)
    expect(text).not.toMatch(/"(timestamp|serialNumber)"/)
  })
})
