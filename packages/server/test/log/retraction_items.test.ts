import { AppendInDoubt, notFound } from '@annals/kits/errors.js'
import { DatabaseAway } from '@annals/kits/postgres/database.js'
import { expect, it } from 'vitest'
import { readItems } from '../../src/log/retraction_routes.ts'

const retraction = { json: '{"data":{"seqs":[1,2]}}' }

/** A log that fails when entries are read. */
const failing = (error: Error) => ({
  // biome-ignore lint/correctness/useYield: it fails first
  async *readSeqs() {
    throw error
  },
})

it('says that a session is gone which was erased before its retracted entries were read', async () => {
  const gone = notFound('session')
  await expect(readItems(failing(gone), retraction).next()).rejects.toBe(gone)
})

it('is in doubt where the database is away before they are read', async () => {
  const away = new DatabaseAway(false, new Error('away'))
  await expect(readItems(failing(away), retraction).next()).rejects.toBeInstanceOf(AppendInDoubt)
})
