import { randomBytes } from 'node:crypto'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { startObjectStore } from '../../lab/object_store.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { useTransfers } from '../harness/exports.ts'
import { judge, SOUND } from '../harness/proof_verifiers.ts'
import { type Project, useService } from '../harness/service.ts'
import { newSessionLog, type SessionLog } from '../harness/session_log.ts'
import { queryRows } from '../harness/sql.ts'
import { verifyDatabase } from '../harness/verification.ts'

const directory = join(tmpdir(), `annals-anchors-${randomBytes(6).toString('hex')}`)
const [file, key] = [join(directory, 'anchors.ndjson'), join(directory, 'key.pem')]
const anchoring = { ANNALS_PROOF_KEY: key, ANNALS_PROOF_ANCHOR_MS: '200' }

beforeAll(async () => {
  await mkdir(directory)
})
const service = useService({ ...anchoring, ANNALS_PROOF_ANCHOR: file })
const transfers = useTransfers(service)
afterAll(() => rm(directory, { recursive: true, force: true }))

interface Anchored {
  nth: number
  public_key: string
  leaves: Array<{ session_id: string; seq: number; state: string }>
}

const anchorsIn = async (path: string): Promise<Anchored[]> =>
  (await readFile(path, 'utf8').catch(() => ''))
    .split('\n')
    .flatMap((line) => (line ? [JSON.parse(line)] : []))

const has = (anchors: Anchored[], session_id: string, seq: number, state = 'live') =>
  anchors.some(({ leaves }) =>
    leaves.some((leaf) => leaf.session_id === session_id && leaf.seq === seq && leaf.state === state),
  )

async function chained(): Promise<{ project: Project; api: ApiClient; log: SessionLog }> {
  const project = await service.newProject()
  const api = await service.newClient({ token: project.token })
  const log = await newSessionLog(api)
  expectOk(await log.addEvent('before'))
  const admin = service.adminClient()
  expectOk(await admin.request('PATCH', `/admin/v1/projects/${project.id}`, { body: { proof: true } }))
  await vi.waitFor(async () => {
    expectOk(await log.addEvent('waiting'))
    const rows = await queryRows(
      service.databaseUrl,
      'SELECT FROM session_heads WHERE session_id = $1 AND proof IS NOT NULL',
      [log.id],
    )
    expect(rows).toHaveLength(1)
  }, 20_000)
  return { project, api, log }
}

interface Proved {
  entry: { seq: number }
  link: string
  head: { seq: number; link: string }
  anchor: { leaf: { seq: number; head: string }; statement: { signature: string } }
}

const proofOf = (api: ApiClient, id: string, seq: number | string) =>
  api.request('GET', `/api/v1/session/${id}/proof`, { query: { seq: String(seq) } })

it('an entry is proved over HTTP up to a signed root, for verifiers that know nothing of Annals', async () => {
  const { project, api, log } = await chained()
  const last = Number(expectOk(await log.addEvent('first')).seq)
  const big = '{"type":"b\\u00e9","data":{"zz":12345678901234567890,"a":[1.50,"\\u2028"]}}'
  const headers = { 'content-type': 'application/json' }
  expectOk(await api.request('POST', `/api/v1/session/${log.id}/events`, { rawBody: big, headers }))
  // Others are in the same tree, so that there are paths.
  await Promise.all(
    Array.from({ length: 4 }, async () => expectOk(await (await newSessionLog(api)).addEvent('beside'))),
  )
  for (let more = 0; more < 3; more++) expectOk(await log.addEvent('later', { more }))
  await vi.waitFor(async () => expect(has(await anchorsIn(file), log.id, last + 4)).toBe(true), 60_000)
  await vi.waitFor(async () => {
    const { anchor } = expectOk(await proofOf(api, log.id, last + 4))
    expect(anchor).not.toBeNull()
  }, 60_000)

  const { public_key } = (await anchorsIn(file))[0]!
  for (const seq of [last, last + 1, last + 4]) {
    const answer = await proofOf(api, log.id, seq)
    const { entry, link, head, anchor } = expectOk(answer) as unknown as Proved
    expect([entry.seq, head.seq, anchor.leaf.seq >= seq]).toEqual([seq, last + 4, true])
    expect(link === head.link).toBe(seq === last + 4)
    const path = transfers.newPath()
    await writeFile(path, answer.text)
    expect(judge(path, file, '--key', public_key)).toEqual(SOUND)
    // Whoever changes anything of it is found out.
    const changes: Array<[RegExp, string]> = [
      [/"created_at":"2/, '"created_at":"1'],
      [/"data":\{"a"/, '"data":{"x": 1, "a"'],
      [/"head":"(.)/, `"head":"${anchor.leaf.head[0] === 'f' ? 'e' : 'f'}`],
      [/"signature":"(.)/, `"signature":"${anchor.statement.signature[0] === 'f' ? 'e' : 'f'}`],
    ]
    for (const [what, instead] of seq === last + 1 ? changes : []) {
      await writeFile(path, answer.text.replace(what, instead))
      expect(judge(path, file, '--key', public_key), instead).not.toEqual(SOUND)
    }
    await writeFile(path, answer.text)
    expect(judge(path, '--key', '00'.repeat(32))[0]).toContain('it is signed with another key')
  }

  expectError(await proofOf(api, log.id, 1), 409, 'not_chained')
  expectError(await proofOf(api, log.id, last + 5), 404, 'entry_not_found')
  expectError(await proofOf(api, log.id, 'x'), 400, 'invalid_request')
  const stranger = await service.newClient()
  const nobodys = await proofOf(stranger, '01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d', last)
  expect((await proofOf(stranger, log.id, last)).text).toBe(nobodys.text)
  // A token of another session gets the same bytes as for one that does not exist; a masked key gets no proof.
  const other = await newSessionLog(api)
  const body = { for: { session_id: other.id }, scopes: ['read'], ttl_s: 60 }
  const { token } = expectOk(await api.request('POST', '/api/v1/tokens', { body }), 201)
  const narrow = await service.newClient({ token: String(token) })
  const absent = await proofOf(narrow, '01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d', last)
  const hidden = await proofOf(narrow, log.id, last)
  expect([hidden.status, hidden.text]).toEqual([404, absent.text])
  expect(
    await verifyDatabase(service.databaseUrl, '--proof', '--project', project.id, '--anchors', file),
  ).toMatchObject({ sound: true })
})

it('the service and commands at once number each anchor once, and an erased session leaves a receipt', async () => {
  const { api, log } = await chained()
  const second = await service.startNode({ ...anchoring, ANNALS_PROOF_ANCHOR: file })
  const gone = await newSessionLog(api)
  const seq = Number(expectOk(await gone.addEvent('gone')).seq)
  await vi.waitFor(async () => expect(has(await anchorsIn(file), gone.id, seq)).toBe(true), 60_000)
  expectOk(await api.request('DELETE', `/api/v1/session/${gone.id}`))
  const [head] = await Promise.all([
    (async () => {
      let last = 0
      for (let more = 0; more < 20; more++) last = Number(expectOk(await log.addEvent('more', { more })).seq)
      return last
    })(),
    ...[1, 2].map(async () => {
      const { code, stderr } = await transfers.run('anchor', file, '--key', key)
      expect(code, stderr).toBe(0)
    }),
  ])
  await vi.waitFor(async () => {
    const anchors = await anchorsIn(file)
    expect([has(anchors, log.id, head), has(anchors, gone.id, seq, 'erased')]).toEqual([true, true])
  }, 60_000)
  await second.stop()
  const anchors = await anchorsIn(file)
  expect(anchors.map(({ nth }) => nth)).toEqual(anchors.map((_, index) => index + 1))
  expect(new Set(anchors.map(({ public_key }) => public_key)).size).toBe(1)
  // What another destination gets is another numbering; and one that was written elsewhere is gone on with.
  const copy = transfers.newPath()
  await writeFile(copy, await readFile(file))
  const { code, stderr } = await transfers.run('anchor', copy, '--key', key)
  expect(code, stderr).toBe(0)
  const more = await anchorsIn(copy)
  expect(more.length).toBeGreaterThan(anchors.length)
  expect(more.map(({ nth }) => nth)).toEqual(more.map((_, index) => index + 1))
})

it('a webhook that fails gets the same anchor again, and the operator is told', async () => {
  const { api, log } = await chained()
  const got: string[] = []
  let status = 500
  const receiver: Server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text
    })
    request.on('end', () => {
      got.push(body)
      response.writeHead(status).end()
    })
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  try {
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook?secret=s3cret`
    const node = await service.startNode({ ...anchoring, ANNALS_PROOF_ANCHOR: url })
    await vi.waitFor(() => expect(got.length).toBeGreaterThan(1), 60_000)
    expect(new Set(got).size).toBe(1)
    const { stdout } = await transfers.run('doctor', '--json')
    expect(stdout).toContain('the last pass failed: The receiver answered 500')
    expect(stdout).not.toContain('s3cret')
    expect(await (await fetch(`${node.url}/metrics`)).text()).toMatch(
      /annals_proof_anchor_failures_total [1-9]/,
    )
    status = 204
    const seq = Number(expectOk(await log.addEvent('later')).seq)
    await vi.waitFor(
      () =>
        expect(
          has(
            got.map((line) => JSON.parse(line)),
            log.id,
            seq,
          ),
        ).toBe(true),
      60_000,
    )
    const numbers = [...new Set(got)].map((line) => JSON.parse(line).nth)
    expect(numbers).toEqual(numbers.map((_, index) => index + 1))
    expectOk(await proofOf(api, log.id, seq))
    await node.stop()
  } finally {
    receiver.closeAllConnections()
    await new Promise((resolve) => receiver.close(resolve))
  }
})

it('a bucket gets an object for each anchor, also of the time in which it was away, and all of them prove a log', async () => {
  const { project, api, log } = await chained()
  const store = await startObjectStore()
  const anchors = async (): Promise<string> =>
    (await Promise.all((await store.keysOf('proofs/below')).map((key) => store.textOf(key)))).join('')
  const isAnchored = async (seq: number) => {
    const lines = (await anchors()).split('\n').filter(Boolean)
    expect(
      has(
        lines.map((line) => JSON.parse(line)),
        log.id,
        seq,
      ),
    ).toBe(true)
  }
  try {
    const node = await service.startNode({
      ...anchoring,
      ...store.env,
      ANNALS_PROOF_ANCHOR: 's3://annals/proofs/below/',
    })
    const first = Number(expectOk(await log.addEvent('first')).seq)
    await vi.waitFor(() => isAnchored(first), 60_000)
    // The other node has sent this head to its file as well: each proves it by the anchor at its own destination.
    await vi.waitFor(async () => expect(has(await anchorsIn(file), log.id, first)).toBe(true), 60_000)
    const bucketApi = await service.newClient({ token: project.token, node })
    const proofs = await Promise.all([api, bucketApi].map((client) => proofOf(client, log.id, first)))
    await store.stop()
    const later = Number(expectOk(await log.addEvent('later')).seq)
    await vi.waitFor(async () => {
      const { stdout } = await transfers.run('doctor', '--json')
      expect(stdout).toContain('s3://annals/proofs/below')
    }, 60_000)
    await store.start()
    await vi.waitFor(() => isAnchored(later), 60_000)
    await node.stop()
    const lines = (await anchors()).trimEnd().split('\n')
    expect(lines.map((line) => JSON.parse(line).nth)).toEqual(lines.map((_, index) => index + 1))
    const path = transfers.newPath()
    await writeFile(path, await anchors())
    expect(
      await verifyDatabase(service.databaseUrl, '--proof', '--project', project.id, '--anchors', path),
    ).toMatchObject({ sound: true })
    for (const [nth, anchors] of [file, path].entries()) {
      const proof = transfers.newPath()
      await writeFile(proof, proofs[nth]!.text)
      expect(judge(proof, anchors)).toEqual(SOUND)
    }
  } finally {
    await store.end()
  }
})
