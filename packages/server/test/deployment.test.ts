import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const pathOf = (name: string) => fileURLToPath(new URL(`../../../${name}`, import.meta.url))
const UNIT = pathOf('deploy/annals.service')
const unit = readFileSync(UNIT, 'utf8')
const dockerfile = readFileSync(pathOf('Dockerfile'), 'utf8')

describe('the systemd unit', () => {
  it('exposes no more than 3 of 10, by what systemd itself says', (context) => {
    const { status, error, stdout } = spawnSync('systemd-analyze', ['security', '--offline=true', UNIT], {
      encoding: 'utf8',
    })
    if (error || status !== 0) return context.skip('there is no systemd-analyze here that looks at files')
    expect(Number(/exposure level for .*: ([\d.]+)/.exec(stdout)![1])).toBeLessThanOrEqual(3)
  })

  it('lets Node compile, and PostgreSQL end after Annals', () => {
    expect(unit).not.toMatch(/^MemoryDenyWriteExecute=/m)
    expect(unit).toMatch(/^KillMode=mixed$/m)
  })
})

describe('the image', () => {
  it('is Node 24, named by its digest in every stage', () => {
    expect(dockerfile).toMatch(/^ARG NODE_IMAGE=node:24\.\d+\.\d+-bookworm-slim@sha256:[0-9a-f]{64}$/m)
    const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base)
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is Docker's placeholder
    expect(bases.filter((base) => !['${NODE_IMAGE}', 'manifests'].includes(base!))).toEqual([])
  })

  it('runs as an ordinary user', () => {
    expect([...dockerfile.matchAll(/^USER (.*)$/gm)].map(([, user]) => user)).toEqual(['1000:1000'])
  })
})
