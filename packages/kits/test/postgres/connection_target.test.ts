import { describe, expect, it } from 'vitest'
import { readConfig } from '../../src/configuration/config.ts'
import { StartError } from '../../src/errors.ts'
import { locateDatabase } from '../../src/postgres/connection_target.ts'

describe('a URL of a database that the driver cannot read', () => {
  it.each([
    ['DATABASE_URL', 'postgresql://ada:s3c/ret@127.0.0.1:1/annals', 'Invalid URL'],
    ['DATABASE_URL', 'postgresql://ada:s3c#ret@127.0.0.1:1/annals', 'Invalid URL'],
    ['DATABASE_URL', 'postgresql://ada:s3cret@127.0.0.1:1/annals?sslrootcert=/none.pem', '/none.pem'],
    ['DATABASE_DIRECT_URL', 'postgresql://ada:s3c?ret@127.0.0.1:1/annals', 'Invalid URL'],
  ])('stops the start with a sentence that names %s, and no secret: %s', async (variable, url, reason) => {
    const config = readConfig({ DATABASE_URL: 'postgresql://127.0.0.1:1/annals', [variable]: url })
    const error = await locateDatabase(config, () => {}).catch((reason: Error) => reason)
    expect(error).toBeInstanceOf(StartError)
    expect((error as Error).message).toContain(`${variable} cannot be used (`)
    expect((error as Error).message).toContain(reason)
    expect((error as Error).message).not.toContain('s3c')
  })
})
