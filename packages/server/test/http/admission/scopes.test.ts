import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { SCOPE_OF_OPERATION } from '../../../src/http/admission/scopes.ts'

interface Document {
  paths: Record<string, Record<string, { operationId: string; security?: object[] }>>
}

const document = JSON.parse(
  readFileSync(new URL('../../../../../openapi.json', import.meta.url), 'utf8'),
) as Document
const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, { operationId }]) => ({ path, method, operationId })),
)

describe('the table of scopes', () => {
  it('has every operation, and no other', () => {
    const described = operations.map(({ operationId }) => operationId).sort()
    expect(Object.keys(SCOPE_OF_OPERATION).sort()).toEqual(described)
  })

  it.each(operations)('asks of $operationId what it does: $method $path', ({ path, method, operationId }) => {
    const expected = path.startsWith('/admin/') ? 'admin' : method === 'get' ? 'read' : 'write'
    expect(SCOPE_OF_OPERATION[operationId]).toBe(expected)
  })
})
