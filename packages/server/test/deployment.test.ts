import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { readConfig } from '../../kits/src/configuration/config.ts'

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

describe('a rollout', () => {
  it.each([
    ['deploy/kubernetes.yaml'],
    ['deploy/helm/annals/templates/service.yaml', 'deploy/helm/annals/templates/_annals.tpl'],
  ])('by %s takes pods out of service before they end, and waits until they have ended', (...names) => {
    const text = names.map((name) => readFileSync(pathOf(name), 'utf8')).join('\n')
    const secondsOf = (pattern: RegExp) => Number(pattern.exec(text)?.[1])
    const away_s = secondsOf(/preStop: \{ sleep: \{ seconds: (\d+) \} \}/)
    const delay_s = secondsOf(/ANNALS_SHUTDOWN_DELAY_MS, value: '(\d+)'/) / 1_000
    const drain_s = readConfig({}).drain_ms_max / 1_000
    expect(away_s).toBeGreaterThan(0)
    expect(delay_s).toBeGreaterThan(0)
    expect(secondsOf(/terminationGracePeriodSeconds: (\d+)/)).toBeGreaterThan(away_s + delay_s + drain_s)
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
