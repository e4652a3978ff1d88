import { createHash, type Hash, randomUUID } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { runCommand } from '../harness/command_process.ts'
import { expectOk } from '../harness/expectations.ts'
import { useTransfers } from '../harness/exports.ts'
import { judge, SOUND } from '../harness/proof_verifiers.ts'
import { type Project, useService } from '../harness/service.ts'
import { newSessionLog, type SessionLog, sessionLog } from '../harness/session_log.ts'
import { execute, queryRows } from '../harness/sql.ts'
import { createTestDatabase, reasonForNoOwnDatabase } from '../harness/test_database.ts'
import { verifyDatabase } from '../harness/verification.ts'

const service = useService()
const transfers = useTransfers(service)
const verify = (project: Project) => verifyDatabase(service.databaseUrl, '--proof', '--project', project.id)

async function chainedProject(): Promise<{ project: Project; api: ApiClient }> {
  const project = await service.newProject()
  await setProof(project, true)
  const api = await service.newClient({ token: project.token })
  return { project, api }
}

async function setProof(project: Project, proof: boolean) {
  const answer = await service
    .adminClient()
    .request('PATCH', `/admin/v1/projects/${project.id}`, { body: { proof } })
  expect(answer.json.data).toMatchObject({ proof })
}

async function linksOf(log: SessionLog, project?: Project): Promise<Array<string | undefined>> {
  const rows = await queryRows<{ proof: Buffer | null }>(
    service.databaseUrl,
    'SELECT proof FROM entries WHERE session_id = $1 AND project_id = coalesce($2, project_id) ORDER BY seq',
    [log.id, project?.id],
  )
  return rows.map(({ proof }) => proof?.toString('hex'))
}

/** A log with all that a log can have. */
async function fullLog(api: ApiClient): Promise<SessionLog> {
  const log = await newSessionLog(api, { user: 'ada' })
  const path = `/api/v1/session/${log.id}`
  expectOk(await log.addEvent('note', { z: 1, aa: [1.5, 'ü\u2028"\\\n\u0001'], '😀': null, a: { b: true } }))
  const big = '{"type":"n\\nn","data":{"id":12345678901234567890,"e":1e2,"f":0.10,"neg":-0,"t":"\\u00e9"}}'
  expectOk(
    await api.request('POST', `${path}/events`, {
      rawBody: big,
      headers: { 'Idempotency-Key': randomUUID(), 'content-type': 'application/json' },
    }),
  )
  expectOk(
    await log.add(
      { role: 'user', content: 'hello' },
      { meta: { a: 1 }, key: 'k', occurred_at: '2026-01-02T03:04:05.6Z' },
    ),
    201,
  )
  expectOk(
    await log.batch([
      { kind: 'event', type: 'a', data: {} },
      { kind: 'message', blob: { role: 'assistant', content: 'hi' } },
    ]),
    201,
  )
  expectOk(await api.request('POST', `${path}/retractions`, { body: { last: 1 } }))
  expectOk(await api.request('POST', `${path}/requests`, { body: { kind: 'question', text: 'Which?' } }), 201)
  await Promise.all(Array.from({ length: 20 }, (_, index) => log.addEvent('many', { index })))
  return log
}

describe('a chained project', () => {
  it('is sound for `annals verify --proof` and for both verifiers, after whatever may be done to it', async () => {
    const { project, api } = await chainedProject()
    const log = await fullLog(api)
    const links = await linksOf(log)
    expect(links).toHaveLength(27)
    expect(links).not.toContain(undefined)
    const { new_session_id } = expectOk(await log.copy())
    expectOk(await sessionLog(api, new_session_id).addEvent())
    const verified = await verify(project)
    expect(verified).toMatchObject({ sound: true, findings: [] })
    const { path } = await transfers.export(project.id)
    expect(judge(path)).toEqual(SOUND)
    // In another project, a chain goes on; and one that is off goes on, too, but begins none.
    const { project: target, api: there } = await chainedProject()
    await transfers.import(path, target.id)
    await setProof(target, false)
    const again = sessionLog(there, log.id)
    expectOk(await again.addEvent())
    expect(await linksOf(again, target)).toEqual([...links, expect.any(String)])
    expect(await verify(target)).toMatchObject({ sound: true })
    expect(judge((await transfers.export(target.id)).path)).toEqual(SOUND)
  })

  it('takes no import that would go on without links, and begins a chain after one that has none', async () => {
    const { project, api } = await chainedProject()
    const log = await newSessionLog(api)
    for (let more = 0; more < 4; more++) expectOk(await log.addEvent('more', { more }))
    const { lines } = await transfers.export(project.id)
    const withoutLinks = async (from: number) => {
      const cut = lines
        .slice(0, -1)
        .map((line) =>
          Number(/"seq": ?(\d+)/.exec(line)?.[1]) >= from ? line.replace(/, ?"proof": ?"\w+"/, '') : line,
        )
      const text = `${cut.join('\n')}\n`
      const end = {
        kind: 'end',
        lines: cut.length,
        sha256: createHash('sha256').update(text).digest('hex'),
      }
      const path = transfers.newPath()
      await writeFile(path, `${text}${JSON.stringify(end)}\n`)
      return path
    }
    const { project: target, api: there } = await chainedProject()
    const refused = await transfers.run('import', await withoutLinks(3), '--project', target.id)
    expect(refused.code).not.toBe(0)
    expect(refused.stdout + refused.stderr).toContain('entry 3 has no link of the chain')
    expect((await there.request('GET', `/api/v1/session/${log.id}`)).status).toBe(404)
    await transfers.import(await withoutLinks(1), target.id)
    expectOk(await sessionLog(there, log.id).addEvent())
    expect(await linksOf(log, target)).toEqual([...Array(4).fill(undefined), expect.any(String)])
    // From here on, it goes on with links only.
    expect(await verify(target)).toMatchObject({ sound: true, projects: [{ links: 1 }] })
  })
})

/** What somebody does in SQL to a log of 27 entries, `$1`, beside another one, `$2`; and where it is found. */
const ALTERATIONS: Array<[what: string, statements: string[], found: string]> = [
  [
    'edits what was said',
    [`UPDATE entries SET data = data || '{"index": 99}' WHERE session_id = $1 AND seq = 20`],
    'seq 20',
  ],
  [
    'edits a digit beyond those of a double',
    [
      `UPDATE entries SET data = jsonb_set(data, '{id}', '12345678901234567891') WHERE session_id = $1 AND seq = 2`,
    ],
    'seq 2',
  ],
  [
    'changes who said it',
    [`UPDATE entries SET role = 'assistant' WHERE session_id = $1 AND seq = 3`],
    'seq 3',
  ],
  [
    'changes when',
    [
      `UPDATE entries SET created_at = created_at + interval '1 microsecond', updated_at = updated_at + interval '1 s' WHERE session_id = $1 AND seq = 27`,
    ],
    'seq 27',
  ],
  [
    'swaps two',
    [
      `UPDATE entries SET seq = -seq WHERE session_id = $1 AND seq IN (20, 21)`,
      `UPDATE entries SET seq = 41 + seq WHERE session_id = $1 AND seq < 0`,
    ],
    'seq 20',
  ],
  [
    'inserts one',
    [
      `UPDATE entries SET seq = -1 - seq WHERE session_id = $1 AND seq > 20`,
      `UPDATE entries SET seq = -seq WHERE session_id = $1 AND seq < 0`,
      `INSERT INTO entries SELECT (e).* FROM (SELECT jsonb_populate_record(e, jsonb_build_object('seq', 21, 'id', gen_random_uuid())) AS e FROM entries e WHERE session_id = $1 AND seq = 20) x`,
      `UPDATE session_heads SET last_seq = 28, counted = 28 WHERE session_id = $1`,
    ],
    'seq 21',
  ],
  [
    'appends one past the chain',
    [
      `INSERT INTO entries SELECT (e).* FROM (SELECT jsonb_populate_record(e, jsonb_build_object('seq', 28, 'id', gen_random_uuid(), 'proof', null)) AS e FROM entries e WHERE session_id = $1 AND seq = 27) x`,
      `UPDATE session_heads SET last_seq = 28, counted = 28 WHERE session_id = $1`,
    ],
    'seq 28',
  ],
  [
    "puts in another session's entry",
    [
      `DELETE FROM entries WHERE session_id = $1 AND seq = 20`,
      `UPDATE entries SET session_id = $1 WHERE session_id = $2 AND seq = 20`,
    ],
    'seq 20',
  ],
]

it('alterations by SQL are each found by `annals verify --proof` and by both verifiers', async () => {
  const { project, api } = await chainedProject()
  const other = await fullLog(api)
  const untouched = await fullLog(api)
  const altered = await Promise.all(ALTERATIONS.map(() => fullLog(api)))
  for (const [index, [, statements]] of ALTERATIONS.entries())
    for (const statement of statements)
      await execute(
        service.databaseUrl,
        statement.replaceAll('$1', `'${altered[index]!.id}'`).replaceAll('$2', `'${other.id}'`),
      )
  expectOk(await api.request('DELETE', `/api/v1/session/${other.id}`))
  const { findings } = await verify(project)
  const judged = judge((await transfers.export(project.id)).path)
  for (const [index, [what, , place]] of ALTERATIONS.entries()) {
    const { id } = altered[index]!
    const proved = findings.filter(({ check, session_id }) => check.startsWith('proof_') && session_id === id)
    expect(
      proved.map((finding) => finding.place),
      what,
    ).toContain(place)
    expect(
      judged.find((line) => line.includes(id)),
      what,
    ).toContain(`session ${id}, ${place}:`)
  }
  expect(JSON.stringify([findings, judged])).not.toContain(untouched.id)
})

/** Makes the rest of a chain anew after a seq, with what Annals itself has for it, as whoever has the database may. */
async function chainAnew({ id }: SessionLog, after_seq: number): Promise<void> {
  await execute(
    service.databaseUrl,
    'UPDATE session_heads SET proof = (SELECT proof FROM entries WHERE session_id = $1 AND seq = $2) WHERE session_id = $1',
    [id, after_seq],
  )
  const [found] = await queryRows<{ name: string }>(
    service.databaseUrl,
    "SELECT proname AS name FROM pg_proc WHERE proname LIKE 'chain_stored_%'",
  )
  await execute(
    service.databaseUrl,
    `SELECT ${found!.name}(project_id, session_id, $2) FROM session_heads WHERE session_id = $1`,
    [id, after_seq],
  )
}

async function dropAfter({ id }: SessionLog, seq: number): Promise<void> {
  await execute(service.databaseUrl, 'DELETE FROM entries WHERE session_id = $1 AND seq > $2', [id, seq])
  await execute(
    service.databaseUrl,
    `UPDATE session_heads h SET last_seq = $2, counted = $2, bytes = e.bytes, proof = e.proof
     FROM (SELECT sum(bytes) AS bytes, (array_agg(proof ORDER BY seq DESC))[1] AS proof FROM entries WHERE session_id = $1) e
     WHERE session_id = $1`,
    [id, seq],
  )
}

it('what was anchored outside is found, however consistently it was rewritten, and honest work is not', async () => {
  const { project, api } = await chainedProject()
  const [rewritten, dropped, restored, kept, erased] = await Promise.all(
    Array.from({ length: 5 }, () => fullLog(api)),
  )
  const [file, key] = [transfers.newPath(), transfers.newPath()]
  const anchor = async () => {
    const { code, stdout, stderr } = await transfers.run('anchor', file, '--key', key)
    expect(code, stderr).toBe(0)
    return stdout.trimEnd()
  }
  const compare = (path = file) =>
    verifyDatabase(service.databaseUrl, '--proof', '--project', project.id, '--anchors', path)
  const anchored = await anchor()
  expect(anchored).toMatch(/^Anchored \d+ heads of \d+ projects, signed with [0-9a-f]{64}\.$/)
  const public_key = anchored.slice(-65, -1)
  expect(await anchor()).toBe('Nothing has changed since the last anchor.')

  expectOk(await kept!.addEvent())
  expectOk(await sessionLog(api, expectOk(await kept!.copy()).new_session_id).addEvent())
  expectOk(await api.request('DELETE', `/api/v1/session/${erased!.id}`))
  expect(await compare()).toMatchObject({ sound: true })
  await anchor()
  const lines = (await readFile(file, 'utf8')).trimEnd().split('\n')
  expect(lines.at(-1)).toContain(`"session_id":"${erased!.id}","seq":27,"head":"`)
  expect(lines.at(-1)).toContain('"state":"erased"')
  const honest = await transfers.export(project.id)
  expect(judge(honest.path, file, '--key', public_key)).toEqual(SOUND)

  await execute(
    service.databaseUrl,
    `UPDATE entries SET data = '{"index": 99}' WHERE session_id = $1 AND seq = 20`,
    [rewritten!.id],
  )
  await chainAnew(rewritten!, 19)
  await dropAfter(dropped!, 26)
  await dropAfter(restored!, 12)
  expectOk(await restored!.addEvent())
  expect((await verify(project)).findings).toEqual([])
  const { path } = await transfers.export(project.id)
  expect(judge(path)).toEqual(SOUND)
  const { findings } = await compare()
  const judged = judge(path, file)
  for (const log of [rewritten!, dropped!, restored!]) {
    expect(findings).toContainEqual(
      expect.objectContaining({ check: 'proof_anchor', session_id: log.id, place: 'seq 27' }),
    )
    expect(judged).toContainEqual(
      expect.stringContaining(`session ${log.id}, seq 27: its log does not have the head of anchor`),
    )
  }
  expect([findings.length, judged.length]).toEqual([3, 3])

  // The anchors themselves: another head in one, one left out, and all of them made anew under another key.
  const own = lines.findIndex((line) => line.includes(`"project":"${project.id}"`))
  const changed = [...lines]
  changed[own] = lines[own]!.replace(/"head":"(..)/, (_, two) => `"head":"${two === '00' ? 'ff' : '00'}`)
  const forgeries: Array<[string[], string]> = [
    [changed, 'its root is not that of its leaves'],
    [lines.filter((_, index) => index !== own), 'it does not follow the anchor before it'],
    ...[0, lines.length - 1].map((at): [string[], string] => [
      lines.with(
        at,
        lines[at]!.replace(/"signature":"(..)/, (_, two) => `"signature":"${two === '00' ? 'ff' : '00'}`),
      ),
      'its signature is not that of its statement',
    ]),
  ]
  for (const [forged, reason] of forgeries) {
    const forgery = transfers.newPath()
    await writeFile(forgery, `${forged.join('\n')}\n`)
    expect(
      (await compare(forgery)).findings.filter(({ check }) => check === 'proof_anchor_file'),
    ).toContainEqual(expect.objectContaining({ detail: reason }))
    expect(judge(honest.path, forgery)).toContainEqual(expect.stringContaining(reason))
    expect((await transfers.run('anchor', forgery, '--key', key)).code).toBe(1)
  }
  const [another, otherKey] = [transfers.newPath(), transfers.newPath()]
  expect((await transfers.run('anchor', another, '--key', otherKey)).code).toBe(0)
  expect(judge(path, another)).toEqual(SOUND)
  expect(judge(path, another, '--key', public_key)[0]).toContain('it is signed with another key')
})

it('an anchor that its place does not take is a sentence, and is sent when it does', async () => {
  const { api } = await chainedProject()
  await fullLog(api)
  const [folder, key] = [transfers.newPath(), transfers.newPath()]
  const anchor = () => transfers.run('anchor', join(folder, 'anchors.ndjson'), '--key', key)
  const failed = await anchor()
  expect(failed.stderr).toMatch(
    /^annals: The anchor did not arrive \(ENOENT: .*\)\. It is sent again, unchanged, by the next pass\.$/,
  )
  expect(failed.code).toBe(1)
  await mkdir(folder)
  const { code, stdout, stderr } = await anchor()
  expect(code, stderr).toBe(0)
  expect(stdout).toMatch(/^Anchored \d+ heads of [1-9]\d* projects, /)
})

it.skipIf(reasonForNoOwnDatabase())(
  'what ends sessions, and a backup that is restored elsewhere, leave chains and anchors sound',
  async () => {
    const { project, api } = await chainedProject()
    const [kept, expired, pruned] = await Promise.all(Array.from({ length: 3 }, () => fullLog(api)))
    const ofUser = await newSessionLog(api, { user: 'bob' })
    expectOk(await ofUser.addEvent())
    const [file, key] = [transfers.newPath(), transfers.newPath()]
    const done = async (...args: string[]) => {
      const { code, stdout, stderr } = await transfers.run(...args)
      expect(code, stderr).toBe(0)
      return stdout
    }
    await done('anchor', file, '--key', key)
    const early = transfers.newPath()
    await done('backup', early, '--project', project.id)
    const node = await service.startNode({ ANNALS_RETENTION_MS: '200' })
    expectOk(await api.request('PATCH', `/api/v1/session/${expired!.id}`, { body: { expires_in_s: 1 } }))
    await vi.waitFor(async () => expect((await expired!.timeline()).status).toBe(404), 60_000)
    await node.stop()
    for (const statement of [
      "UPDATE session_heads SET updated_at = updated_at - interval '100 days' WHERE session_id = $1",
      "UPDATE sessions SET created_at = created_at - interval '100 days' WHERE id = $1",
      "UPDATE list_terms SET created_at = created_at - interval '100 days' WHERE item_id = $1",
    ])
      await execute(service.databaseUrl, statement, [pruned!.id])
    const said = await done('prune', '--project', project.name, '--older-than', '90d')
    expect(said).toContain('Deleted 1 session with 27 entries')
    expectOk(await api.request('DELETE', '/api/v1/user/bob'))
    for (const log of [expired!, pruned!, ofUser]) expect((await log.timeline()).status).toBe(404)
    expectOk(await kept!.addEvent())
    await done('anchor', file, '--key', key)
    const gone = (await readFile(file, 'utf8')).match(/"state":"erased"/g)
    expect(gone).toHaveLength(3)

    const backup = transfers.newPath()
    await done('backup', backup, '--project', project.id)
    const [restored, older] = [await createTestDatabase(), await createTestDatabase()]
    try {
      for (const [url, from] of [
        [restored.url, backup],
        [older.url, early],
      ] as const) {
        const { code, stderr } = await runCommand(['restore', from], { DATABASE_URL: url })
        expect(code, stderr).toBe(0)
      }
      for (const url of [service.databaseUrl, restored.url])
        expect(
          await verifyDatabase(url, '--proof', '--project', project.id, '--anchors', file),
        ).toMatchObject({ sound: true, findings: [] })
      expect(judge((await transfers.export(project.id)).path, file)).toEqual(SOUND)

      // Instead of the database, a backup that is older than the last anchor.
      const place = { session_id: kept!.id, place: 'seq 28' }
      expect(
        await verifyDatabase(older.url, '--proof', '--project', project.id, '--anchors', file),
      ).toMatchObject({ sound: false, findings: [{ check: 'proof_anchor', ...place }] })
      const path = transfers.newPath()
      const exported = await runCommand(['export', '--project', project.id, '--output', path], {
        DATABASE_URL: older.url,
      })
      expect(exported.code, exported.stderr).toBe(0)
      expect(judge(path, file)).toEqual([
        expect.stringMatching(`^session ${kept!.id}, seq 28: its log does not have the head of anchor`),
      ])
    } finally {
      await restored.drop()
      await older.drop()
    }
  },
)

it('the vectors of docs/proof.md are what the database and both verifiers make of them', async () => {
  const { user, chains } = JSON.parse(await readFile('docs/proof.vectors.json', 'utf8')) as Vectors
  const sha256 = (...parts: Array<string | Buffer>) =>
    parts.reduce<Hash>((hash, part) => hash.update(part), createHash('sha256')).digest()
  const lines = [
    JSON.stringify({
      ...{ annals_export: 1, what: 'project', project_id: randomUUID(), project: 'vectors' },
      ...{ exported_at: '2026-11-26T12:00:00.000Z', annals_version: '0.1.0', schema_version: 41 },
    }),
    user,
  ]
  for (const { session, genesis, entries } of chains) {
    lines.push(session)
    let link = Buffer.from(genesis, 'hex')
    for (const { line, content, link: expected } of entries) {
      const { seq, id, created_at, kind } = JSON.parse(line) as Record<string, string>
      link = sha256(link, `${seq}\n${id}\n${created_at}\n${kind}\n`, sha256(content))
      expect(link.toString('hex')).toBe(expected)
      lines.push(line)
    }
  }
  const text = `${lines.join('\n')}\n`
  const end = JSON.stringify({ kind: 'end', lines: lines.length, sha256: sha256(text).toString('hex') })
  const path = transfers.newPath()
  await writeFile(path, `${text}${end}\n`)
  expect(judge(path)).toEqual(SOUND)
  const project = await service.newProject()
  await transfers.import(path, project.id)
  expect(await verify(project)).toMatchObject({ sound: true, projects: [{ links: 9 }] })
})

interface Vectors {
  user: string
  chains: Array<{
    session: string
    genesis: string
    entries: Array<{ line: string; content: string; link: string }>
  }>
}
