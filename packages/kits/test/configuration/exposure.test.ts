import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { readConfig } from '../../src/configuration/config.ts'
import { exposureWarnings } from '../../src/configuration/exposure.ts'

const warningsOf = (environment: Record<string, string>) => exposureWarnings(readConfig(environment))

describe('a service on the network', () => {
  it.each(['0.0.0.0', '::', '192.0.2.7', 'db.example.com', '127.0.0.1.example.com'])(
    'without TLS in front is warned of: HOST=%s',
    (HOST) => {
      expect(warningsOf({ HOST })).toEqual([expect.stringContaining('ANNALS_BEHIND_TLS')])
      expect(warningsOf({ HOST, ANNALS_BEHIND_TLS: 'false' })).toHaveLength(1)
      expect(warningsOf({ HOST, ANNALS_BEHIND_TLS: 'true' })).toEqual([])
    },
  )

  it.each(['127.0.0.1', '127.8.9.1', '::1', 'localhost', ''])('is none on loopback: HOST=%s', (HOST) => {
    expect(warningsOf({ HOST })).toEqual([])
  })
})

describe('a token of the configuration', () => {
  const weak = ['a'.repeat(64), '0123456789'.repeat(4), 'password'.repeat(4), 'changeme'.repeat(4)]

  it.each(['ANNALS_ADMIN_TOKEN', 'ANNALS_API_KEY'])(
    'that repeats itself is warned of, and not shown: %s',
    (name) => {
      for (const token of weak) {
        const [warning, ...rest] = warningsOf({ [name]: token })
        expect(warning, token).toContain(name)
        expect(warning).not.toContain(token)
        expect(rest).toEqual([])
      }
    },
  )

  it('that is random is not, in any usual spelling', () => {
    for (let round = 0; round < 200; round++) {
      for (const encoding of ['hex', 'base64url'] as const) {
        const token = randomBytes(24).toString(encoding)
        expect(warningsOf({ ANNALS_ADMIN_TOKEN: token, ANNALS_API_KEY: token }), token).toEqual([])
      }
    }
  })
})

describe('web pages of any origin', () => {
  it('are warned of', () => {
    expect(warningsOf({ ANNALS_CORS_ORIGINS: '*' })).toEqual([expect.stringContaining('ANNALS_CORS_ORIGINS')])
    expect(warningsOf({ ANNALS_CORS_ORIGINS: 'https://app.example.com' })).toEqual([])
  })
})
