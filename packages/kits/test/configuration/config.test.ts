import { describe, expect, it } from 'vitest'
import { describeSettings, readConfig } from '../../src/configuration/config.ts'
import { StartError } from '../../src/errors.ts'

function refusalOf(environment: Record<string, string>): string {
  try {
    readConfig(environment)
  } catch (error) {
    expect(error).toBeInstanceOf(StartError)
    return (error as StartError).message
  }
  throw new Error(`no refusal of ${JSON.stringify(environment)}`)
}

const settings = describeSettings()
const integers = settings.filter(({ default: shown }) => /^\d+( |$)/.test(shown))

describe('the configuration', () => {
  it('has a default for everything', () => {
    expect(readConfig({})).toMatchObject({
      host: '127.0.0.1',
      port: 8029,
      database_url: undefined,
      data_dir: '.annals',
      api_key: undefined,
      admin_token: undefined,
      log_level: 'info',
      body_bytes_max: 1_048_576,
    })
  })

  it('takes an empty variable as unset', () => {
    const empty = Object.fromEntries(settings.map(({ variable }) => [variable, '']))
    expect(readConfig(empty)).toEqual(readConfig({}))
  })

  it('ignores variables that are not its own', () => {
    expect(readConfig({ PATH: '/bin', ANNALS_NOTHING: 'x', port: '1' })).toEqual(readConfig({}))
  })

  it('cannot be changed', () => {
    expect(Object.isFrozen(readConfig({}))).toBe(true)
  })

  it('reads what is set', () => {
    const environment = {
      HOST: '::',
      PORT: '0',
      DATABASE_URL: 'postgres://annals@/annals?host=/run/postgresql',
      ANNALS_DATA_DIR: 'relative/path with space',
      ANNALS_API_KEY: 'k'.repeat(32),
      ANNALS_ADMIN_TOKEN: '!~'.repeat(128),
      LOG_LEVEL: 'silent',
    }
    expect(readConfig(environment)).toMatchObject({
      host: '::',
      port: 0,
      database_url: 'postgres://annals@/annals?host=/run/postgresql',
      data_dir: 'relative/path with space',
      api_key: 'k'.repeat(32),
      admin_token: '!~'.repeat(128),
      log_level: 'silent',
    })
  })

  it.each(['*', 'https://app.example.com', 'http://localhost:3000,https://a.example,http://[::1]:8080'])(
    'takes origins as browsers send them: %s',
    (origins) => {
      expect(readConfig({ ANNALS_CORS_ORIGINS: origins }).cors_origins).toBe(origins)
    },
  )

  it.each([
    'https://app.example.com/',
    'https://app.example.com/path',
    'https://app.example.com?x',
    'https://APP.example.com',
    'HTTPS://app.example.com',
    'https://app.example.com:443',
    'http://app.example.com:80',
    'https://user@app.example.com',
    'https://bücher.example',
    'https://app.example.com, https://b.example',
    'https://app.example.com,',
    'https://a.example,*',
    'https://*.example.com',
    'app.example.com',
    'file:///x',
    'null',
    'https://',
  ])('refuses an origin that no browser sends, with a sentence that shows one: %s', (origins) => {
    expect(refusalOf({ ANNALS_CORS_ORIGINS: origins })).toMatch(
      /^ANNALS_CORS_ORIGINS must be origins as browsers send them.*https:\/\/app\.example\.com/,
    )
  })

  it('lets blobs be 25 MiB in PostgreSQL and 1 GiB in an object store, unless it says otherwise', () => {
    const bucket = { ANNALS_S3_BUCKET: 'bucket' }
    expect(readConfig({}).blob_bytes_max).toBe(25 * 1024 ** 2)
    expect(readConfig(bucket).blob_bytes_max).toBe(1024 ** 3)
    expect(readConfig({ ...bucket, ANNALS_BLOB_BYTES_MAX: '5000' }).blob_bytes_max).toBe(5_000)
    expect(refusalOf({ ANNALS_BLOB_BYTES_MAX: String(1024 ** 3) })).toContain('at most 536870912')
  })

  it('keeps a revocation within 5 s of every node, whatever is set', () => {
    expect(readConfig({}).token_cache_ms).toBeLessThan(5_000)
    expect(refusalOf({ ANNALS_TOKEN_CACHE_MS: '5000' })).toContain('ANNALS_TOKEN_CACHE_MS')
  })
})

describe('every number of the configuration', () => {
  it('is described with a unit or as a count, and its description fits the default that is used', () => {
    expect(integers.length).toBeGreaterThan(5)
    const used = Object.values(readConfig({}))
    for (const { default: shown } of integers) expect(used).toContain(Number.parseInt(shown, 10))
  })

  it.each(integers.map(({ variable }) => variable))('is refused by name when it is none: %s', (variable) => {
    for (const value of [
      'x',
      '-1',
      '1.5',
      '1e3',
      '0x10',
      ' 5',
      '5 ',
      '1_000',
      'NaN',
      'Infinity',
      '9'.repeat(16),
    ]) {
      const message = refusalOf({ [variable]: value })
      expect(message).toMatch(new RegExp(`^${variable} must be an integer from \\d+ to \\d+`))
    }
  })

  it.each(integers.map(({ variable }) => variable))(
    'is taken at its bounds and refused beyond: %s',
    (variable) => {
      const [, min, max] = /from (\d+) to (\d+)/.exec(refusalOf({ [variable]: 'x' }))!
      for (const value of [min!, max!])
        expect(() => readConfig({ ANNALS_S3_BUCKET: 'bucket', [variable]: value })).not.toThrow()
      expect(refusalOf({ [variable]: String(Number(max) + 1) })).toContain(variable)
      if (min !== '0') expect(refusalOf({ [variable]: String(Number(min) - 1) })).toContain(variable)
    },
  )
})

describe('a value that does not fit', () => {
  it.each([
    ['DATABASE_URL', 'mysql://root:a-secret-word@db/x', 'postgresql://'],
    ['DATABASE_URL', 'host=db password=a-secret-word', 'postgresql://'],
    ['ANNALS_API_KEY', 'a-secret-word', '32 to 256 visible ASCII characters'],
    ['ANNALS_API_KEY', `a-secret-word ${'x'.repeat(40)}`, '32 to 256 visible ASCII characters'],
    ['ANNALS_API_KEY', `a-secret-word-ü-${'x'.repeat(40)}`, '32 to 256 visible ASCII characters'],
    ['ANNALS_API_KEY', `a-secret-word-${'x'.repeat(256)}`, '32 to 256 visible ASCII characters'],
    ['ANNALS_ADMIN_TOKEN', 'a-secret-word', '32 to 256 visible ASCII characters'],
    ['LOG_LEVEL', 'a-secret-word', 'one of fatal, error, warn, info, debug, trace, silent'],
    ['PORT', 'a-secret-word', 'an integer from 0 to 65535'],
    ['PORT', '65536', 'an integer from 0 to 65535'],
  ])('of %s is refused by name, with what it takes and without the value', (variable, value, takes) => {
    const message = refusalOf({ [variable]: value })
    expect(message).toMatch(new RegExp(`^${variable} must be `))
    expect(message).toContain(takes)
    expect(message).not.toContain('a-secret-word')
  })
})
