import { describe, expect, it } from 'vitest'
import { faultOf } from '../checks.ts'
import { operations } from '../document.ts'
import { plans, type Request } from '../requests.ts'
import type { Answer } from '../send.ts'
import { findStoring } from '../stored.ts'

const operation = operations.find(({ id }) => id === 'listSessions')!
const request: Request = { operation, method: 'GET', path: '/api/v1/session', headers: {}, body: undefined }
const HEADERS = { 'content-type': 'application/json; charset=utf-8', 'x-request-id': 'a' }

function answer(status: number, body: unknown, headers: Answer['headers'] = HEADERS): Answer {
  return { status, headers, text: JSON.stringify(body) }
}
const success = (data: unknown) => answer(200, { code: 0, error: '', msg: 'ok', data })
const refusal = (status: number, error: string, msg: string) => answer(status, { code: status, error, msg })

describe('an answer', () => {
  it('that is as it should be is no finding', () => {
    const page = { items: [], has_more: false, next_cursor: '' }
    const place = 'Query parameter limit must be an integer from 1 to 200.'
    expect(faultOf(request, success(page))).toBeUndefined()
    expect(faultOf(request, refusal(400, 'invalid_request', place))).toBeUndefined()
    expect(faultOf(request, refusal(503, 'unavailable', 'The database is away.'))).toBeUndefined()
  })

  it.each<[string, Answer, RegExp]>([
    ['a fault of the service', refusal(500, 'internal_error', 'Something went wrong.'), /a fault/],
    ['another schema', success({ items: [], has_more: 'no', next_cursor: '' }), /does not fit/],
    ['a field too few', success({ items: [] }), /does not fit/],
    ['a status that is not described', refusal(409, 'seq_conflict', 'If-Match'), /409/],
    ['no place', refusal(400, 'invalid_request', 'That is wrong.'), /no place/],
    ['an error that nobody knows', refusal(400, 'strange', 'Query parameter limit is wrong.'), /no place/],
    ['no request id', answer(200, {}, { 'content-type': 'application/json' }), /X-Request-Id/],
    ['another content type', answer(200, {}, { ...HEADERS, 'content-type': 'text/html' }), /content type/],
    ['no JSON', { status: 200, headers: HEADERS, text: '{' }, /not JSON/],
  ])('is a finding with %s', (_what, given, fault) => {
    expect(faultOf(request, given)).toMatch(fault)
  })
})

describe('a request that fails and stores all the same', () => {
  it('is found among many that do not', async () => {
    let stored = 0
    const requests = Array.from({ length: 37 }, (_, at) => ({ ...request, path: `/${at}` }))
    const guilty = [requests[5]!, requests[30]!]
    const send = async (sent: Request) => {
      if (guilty.includes(sent)) stored += 1
      return refusal(400, 'invalid_request', '')
    }
    expect(await findStoring(requests, send, async () => String(stored))).toEqual(guilty)
    expect(await findStoring(requests.slice(6, 30), send, async () => String(stored))).toEqual([])
  })
})

describe('the requests of a seed', () => {
  it('are the same each time, and of every operation', () => {
    const made = plans(7, 2_000)
    expect(JSON.stringify(plans(7, 2_000))).toBe(JSON.stringify(made))
    expect(JSON.stringify(plans(8, 2_000))).not.toBe(JSON.stringify(made))
    expect(new Set(made.map((plan) => plan.operation.id)).size).toBe(operations.length)
  })
})
