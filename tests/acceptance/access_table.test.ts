import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  type Cell,
  type GuardedOperation,
  guardedOperations,
  KEY_SCOPES,
  keyMay,
  ROLES,
  roleMay,
  TOKEN_SCOPES,
  tokenFor,
  tokenMay,
  tryOperation,
} from '../harness/access_requests.ts'
import { expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import type { HttpClient } from '../harness/http_client.ts'
import { newPerson } from '../harness/people.ts'
import { type Project, useSharedService } from '../harness/service.ts'

const PAGE = fileURLToPath(new URL('../../docs/access.md', import.meta.url))
const BEGIN = '<!-- table -->\n'
const END = '<!-- /table -->'
const SHOWN: Record<Cell, string> = { yes: 'yes', own: 'its own', nothing: 'nothing', no: '' }
const USER = 'ada'

const service = useSharedService()
const keys = new Map<string, HttpClient>()
const people = new Map<string, HttpClient>()
const tokens = new Map<string, HttpClient>()
let project: Project
let own = ''

beforeAll(async () => {
  project = await service.newProject()
  const api = await service.newClient({ token: project.token })
  own = expectOk(await api.createSession({ user: USER }), 201).id
  for (const scope of KEY_SCOPES) {
    const path = `/admin/v1/projects/${project.id}/tokens`
    const body = { name: scope, scopes: [scope] }
    const made = await service.adminClient().request<{ token: string }>('POST', path, { body })
    keys.set(scope, service.rawClient(expectOk(made, 201).token))
  }
  for (const role of ROLES) {
    const { token } = await newPerson(service.databaseUrl, project.id, role)
    people.set(role, service.rawClient(token))
  }
  for (const scope of TOKEN_SCOPES)
    tokens.set(scope, service.rawClient(await tokenFor(api, { user: USER }, [scope])))
})

const given = (session_id: string) => {
  const names = [
    'webhook_id',
    'message_id',
    'learning_space_id',
    'statement_id',
    'skill_id',
    'token_id',
    'request_id',
    'input_id',
    'member_id',
  ]
  const ids = Object.fromEntries(names.map((name) => [name, NOBODYS_ID]))
  return {
    ids: { ...ids, session_id, sha256: 'a'.repeat(64), identifier: randomUUID() },
    bodies: {
      createSession: { user: USER },
      issueToken: { for: { user: USER }, scopes: ['read'], ttl_s: 60 },
    },
  }
}

describe('docs/access.md', () => {
  it('has every operation, in the row of those who may use it', async () => {
    const page = readFileSync(PAGE, 'utf8')
    const [before = '', rest = ''] = page.split(BEGIN)
    const [, after = ''] = rest.split(END)
    const heads = [
      ...KEY_SCOPES,
      ...ROLES.map((role) => `role: ${role}`),
      ...TOKEN_SCOPES.map((scope) => `token: ${scope}`),
      'Operations',
    ]
    const rightsOf = (operation: GuardedOperation) =>
      [
        ...KEY_SCOPES.map((scope) => SHOWN[keyMay(operation, scope)]),
        ...ROLES.map((role) => SHOWN[roleMay(operation, role)]),
        ...TOKEN_SCOPES.map((scope) => SHOWN[tokenMay(operation, scope)]),
      ].join(' | ')
    const rows = [...new Set(guardedOperations.map(rightsOf))].map((rights) => {
      const operations = guardedOperations.filter((operation) => rightsOf(operation) === rights)
      return `${rights} | ${operations.map(nameOf).join(', ')}`
    })
    const table = [heads.join(' | '), heads.map(() => '---').join(' | '), ...rows]
      .map((row) => `| ${row} |\n`)
      .join('')
    // After a change of an operation: npm test -- tests/acceptance/access_table -u
    await expect(`${before}${BEGIN}\n${table}\n${END}${after}`).toMatchFileSnapshot(PAGE)
  })
})

function nameOf({ method, path }: GuardedOperation): string {
  return `\`${method.toUpperCase()} ${path.replace('/api/v1', '')}\``
}

describe.each(guardedOperations.map((operation): [string, GuardedOperation] => [operation.name, operation]))(
  'the operation %s',
  (_name, operation) => {
    it('serves the keys that the table names, and no others', async () => {
      for (const scope of KEY_SCOPES) {
        const { status, text } = await tryOperation(keys.get(scope)!, operation, given(NOBODYS_ID))
        expect(status, text).not.toBe(401)
        const isRefused = status === 403 && text.includes('lacks the scope')
        expect(isRefused ? 'no' : 'yes', `${scope}: ${text}`).toBe(keyMay(operation, scope))
      }
    })

    it('serves the people whose role the table names, and no others', async () => {
      for (const role of ROLES) {
        const { status, text } = await tryOperation(people.get(role)!, operation, given(NOBODYS_ID))
        expect(status, text).not.toBe(401)
        const isRefused = status === 403 && text.includes('lacks the scope')
        expect(isRefused ? 'no' : 'yes', `${role}: ${text}`).toBe(roleMay(operation, role))
      }
    })

    it('answers tokens as the table says', async () => {
      for (const scope of TOKEN_SCOPES) {
        const { status, text } = await tryOperation(tokens.get(scope)!, operation, given(own))
        const isNothing = status === 404 || /"data":\{"items":\[\],?/.test(text)
        const expected = tokenMay(operation, scope)
        const said = `${scope}: ${status} ${text}`
        expect(status, said).not.toBe(401)
        expect(status === 403, said).toBe(expected === 'no')
        if (expected === 'nothing') expect(isNothing, said).toBe(true)
      }
    })
  },
)
