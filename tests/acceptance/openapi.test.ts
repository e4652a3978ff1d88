import { createConfig, lintFromString } from '@redocly/openapi-core'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import type { Answer, RequestOptions } from '../harness/http_client.ts'
import { useSharedService } from '../harness/service.ts'

interface Operation {
  operationId?: string
  summary?: string
  responses: Record<string, { $ref?: string; content?: Record<string, { schema?: object }> }>
}
interface OpenApiDocument {
  paths: Record<string, Record<string, Operation>>
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete']
const service = useSharedService()
let api: ApiClient
let source: string
let document: OpenApiDocument
let ajv: Ajv2020

beforeAll(async () => {
  api = await service.newClient()
  source = (await service.rawClient().request('GET', '/openapi.json')).text
  document = JSON.parse(source) as OpenApiDocument
  ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false })
  ajv.addSchema(document, 'openapi')
})

const operations = () =>
  Object.entries(document.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => ({ path, method, operation: item[method]! })),
  )

/** The document's path that describes a real one: literal segments before parameters. */
function describedPath(method: string, realPath: string): string {
  const wanted = realPath.split('?')[0]!.split('/')
  const candidates = operations().filter((candidate) => {
    const segments = candidate.path.split('/')
    if (candidate.method !== method || segments.length !== wanted.length) return false
    return segments.every((segment, index) => segment.startsWith('{') || segment === wanted[index])
  })
  expect(candidates, `${method} ${realPath} is described`).not.toHaveLength(0)
  return candidates.sort((a, b) => a.path.split('{').length - b.path.split('{').length)[0]!.path
}

/** The answer has a status that the document knows for the operation, and a body that fits its schema. */
function expectDescribed(method: string, realPath: string, answer: Answer<unknown>): void {
  const path = describedPath(method.toLowerCase(), realPath)
  const { responses } = document.paths[path]![method.toLowerCase()]!
  const where = `${method} ${path} ${answer.status}`
  expect(Object.keys(responses), where).toContain(String(answer.status))
  const inline = ['paths', path, method.toLowerCase(), 'responses', answer.status]
  const shared = responses[answer.status]?.$ref?.slice(2).split('/')
  const escaped = [...(shared ?? inline), 'content', 'application/json', 'schema'].map((part) =>
    encodeURIComponent(String(part).replaceAll('~', '~0').replaceAll('/', '~1')),
  )
  let validate: ReturnType<typeof ajv.compile>
  try {
    validate = ajv.compile({ $ref: `openapi#/${escaped.join('/')}` })
  } catch (error) {
    throw new Error(`${where}: ${(error as Error).message}`)
  }
  expect(
    validate(answer.json),
    `${where}: ${ajv.errorsText(validate.errors)}\n${answer.text.slice(0, 500)}`,
  ).toBe(true)
}

describe('the OpenAPI document', () => {
  it('passes the linter without an error', async () => {
    const config = await createConfig({ extends: ['recommended'] })
    const problems = await lintFromString({ source, absoluteRef: '/openapi.json', config })
    const errors = problems
      .filter((problem) => problem.severity === 'error')
      .map((problem) => `${problem.ruleId}: ${problem.message} at ${problem.location[0]?.pointer}`)
    expect(errors).toEqual([])
  })

  it('describes every operation of the API', () => {
    const described = operations().map(({ method, path }) => `${method} ${path.replaceAll(/\{\w+\}/g, '{}')}`)
    expect(described).toEqual(
      expect.arrayContaining([
        'get /api/v1/ping',
        'get /api/v1/session',
        'post /api/v1/session',
        'get /api/v1/session/{}',
        'delete /api/v1/session/{}',
        'get /api/v1/session/{}/events',
        'post /api/v1/session/{}/events',
        'post /api/v1/learning_spaces',
        'get /api/v1/learning_spaces/{}',
      ]),
    )
  })

  it('has an id of its own for each operation, a summary, and its errors', () => {
    const ids = operations().map(({ operation }) => operation.operationId)
    expect(ids).not.toContain(undefined)
    expect(new Set(ids).size).toBe(ids.length)
    for (const { path, method, operation } of operations()) {
      expect(operation.summary, `${method} ${path}`).toBeTruthy()
      if (path.startsWith('/api/v1')) expect(Object.keys(operation.responses)).toContain('401')
    }
  })

  it('has each error answer once, among its components', () => {
    const inline = operations().flatMap(({ path, method, operation }) =>
      Object.entries(operation.responses)
        .filter(([status, { $ref }]) => Number(status) >= 400 && !$ref)
        .map(([status]) => `${method} ${path} ${status}`),
    )
    expect(inline).toEqual([])
    expect(JSON.stringify(document, null, 2).split('\n').length).toBeLessThan(24_000)
  })

  it('names only resources of its own', () => {
    const external = [...source.matchAll(/"\$ref":\s*"([^"]+)"/g)].map((match) => match[1]!)
    expect(external.filter((reference) => !reference.startsWith('#'))).toEqual([])
  })
})

describe('what the service answers', () => {
  it('fits the schemas of the document', async () => {
    const { id } = expectOk(await api.createSession({ user: 'ada', configs: { a: [1] } }), 201)
    const space = expectOk(await api.createLearningSpace({ user: 'ada', meta: { b: null } }), 201)
    const event = { type: 'note', data: { text: 'x' } }
    const sample: Array<[string, string, RequestOptions?]> = [
      ['GET', '/api/v1/ping'],
      ['POST', '/api/v1/session', { body: {} }],
      ['POST', '/api/v1/session', { body: { use_uuid: id } }],
      ['POST', '/api/v1/session', { body: { use_uuid: id, configs: { b: 1 } } }],
      ['POST', '/api/v1/session', { rawBody: '{' }],
      ['POST', '/api/v1/session', { rawBody: 'x', headers: { 'Content-Type': 'text/plain' } }],
      ['POST', '/api/v1/session', { body: { configs: { x: 'x'.repeat(70_000) } } }],
      ['GET', '/api/v1/session'],
      ['GET', '/api/v1/session?limit=1'],
      ['GET', '/api/v1/session?limit=0'],
      ['GET', `/api/v1/session/${id}`],
      ['GET', `/api/v1/session/${NOBODYS_ID}`],
      ['POST', `/api/v1/session/${id}/events`, { body: event }],
      ['POST', `/api/v1/session/${id}/events`, { body: event, headers: { 'Idempotency-Key': 'a' } }],
      ['POST', `/api/v1/session/${id}/events`, { body: {}, headers: { 'Idempotency-Key': 'a' } }],
      ['POST', `/api/v1/session/${NOBODYS_ID}/events`, { body: event, headers: { 'Idempotency-Key': 'a' } }],
      ['POST', `/api/v1/session/${id}/events`, { body: event, headers: { 'If-Match': '"9"' } }],
      ['POST', `/api/v1/session/${NOBODYS_ID}/events`, { body: event }],
      ['GET', `/api/v1/session/${id}/events?limit=1`],
      ['GET', `/api/v1/session/${id}/events?cursor=x`],
      ['POST', '/api/v1/learning_spaces', { body: {} }],
      ['POST', '/api/v1/learning_spaces', { body: { surprise: 1 } }],
      ['GET', `/api/v1/learning_spaces/${space.id}`],
      ['GET', `/api/v1/learning_spaces/${NOBODYS_ID}`],
      ['DELETE', `/api/v1/session/${id}`],
      ['DELETE', `/api/v1/session/${id}`],
    ]
    for (const [method, path, options] of sample) {
      expectDescribed(method, path, await api.request(method, path, options))
    }
    const stranger = await service.rawClient().request('GET', '/api/v1/session')
    expectDescribed('GET', '/api/v1/session', stranger)
  })
})
