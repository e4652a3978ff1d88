import type { FastifyRequest } from 'fastify'
import { expect, it } from 'vitest'
import { piecesStream } from '../../../src/http/answer/answer.ts'

it('an answer is begun though its key was revoked meanwhile, and cut after its first piece', async () => {
  const request = { isStillAuthorized: async () => false } as FastifyRequest
  const pieces = piecesStream(request, ['first', 'second'])[Symbol.asyncIterator]()
  expect(String((await pieces.next()).value)).toBe('first')
  await expect(pieces.next()).rejects.toThrow('revoked')
})
