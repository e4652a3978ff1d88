import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { expect, it } from 'vitest'

interface Manifest {
  name: string
  private?: boolean
  dependencies?: Record<string, string>
}

interface Plan {
  publishOrder(manifests: Manifest[]): string[]
  publishSteps(release: Record<string, unknown>): Array<{ run: string[] }>
}

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
// A program of Node alone, without types.
const plan: Plan = await import(pathToFileURL(join(ROOT, 'release/plan.js')).href)
const { publishOrder, publishSteps } = plan
const manifests: Manifest[] = ['packages', 'packages/adapters']
  .flatMap((folder) =>
    readdirSync(join(ROOT, folder)).map((name) => join(ROOT, folder, name, 'package.json')),
  )
  .filter((path) => existsSync(path))
  .map((path) => JSON.parse(readFileSync(path, 'utf8')))

it('a release publishes every package that is not private, after those of ours that it depends on', () => {
  const order = publishOrder(manifests)
  const published = manifests.filter((one) => !one.private)
  expect([...order].sort()).toEqual(published.map(({ name }) => name).sort())
  for (const { name, dependencies = {} } of published)
    for (const other of Object.keys(dependencies).filter((one) => order.includes(one)))
      expect(order.indexOf(other), `${name} needs ${other}`).toBeLessThan(order.indexOf(name))
})

it('packages that depend on each other cannot be published', () => {
  const circle = [
    { name: 'a', dependencies: { b: '1' } },
    { name: 'b', dependencies: { a: '1' } },
  ]
  expect(() => publishOrder(circle)).toThrow('a, b')
})

it('a release has provenance for each package and for the image, which is signed by its digest', () => {
  const steps = publishSteps({ manifests, version: '1.2.3', image: 'r/annals', wheel: 'a.whl', files: [] })
  const lines = steps.map(({ run }) => run.join(' '))
  const npm = lines.filter((line) => line.startsWith('npm publish'))
  expect(npm.length).toBe(publishOrder(manifests).length)
  expect(npm.filter((line) => !line.endsWith('.tgz --access public --provenance'))).toEqual([])
  const image = lines.find((line) => line.startsWith('docker'))
  for (const part of ['linux/amd64,linux/arm64', '--provenance=mode=max', '--sbom=true', 'r/annals:1.2.3'])
    expect(image).toContain(part)
  expect(lines.find((line) => line.startsWith('cosign'))).toContain('r/annals@{digest')
})
