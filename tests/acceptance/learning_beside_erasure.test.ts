import { expect, it, vi } from 'vitest'
import { expectOk } from '../harness/expectations.ts'
import { lockWaits } from '../harness/lock_waits.ts'
import { useSharedService } from '../harness/service.ts'
import { withConnection } from '../harness/sql.ts'

const service = useSharedService()

it.each([
  ['feedback', { helped: true }],
  ['learn', {}],
])('whoever erases a user, sessions first, is not in a deadlock with %s', async (operation, further) => {
  const project = await service.newProject()
  const api = await service.newClient({ token: project.token })
  const session_id = expectOk(await api.createSession({ user: 'ada' }), 201).id
  const space = expectOk(await api.createLearningSpace({ user: 'ada' }), 201).id
  const post = (path: string, body: object) =>
    api.request<{ id: string }>('POST', `/api/v1/learning_spaces/${space}/${path}`, { body })
  const { id } = expectOk(await post('statements', { text: 'Ask before you pay.' }), 201)
  const statements = operation === 'feedback' ? { statement_ids: [id] } : {}
  await withConnection(service.databaseUrl, async (connection) => {
    const lock = (table: string, column: string, row: string, how: string) =>
      connection.query(`SELECT FROM ${table} WHERE project_id = $1 AND ${column} = $2 FOR UPDATE${how}`, [
        project.id,
        row,
      ])
    await connection.query('BEGIN')
    await lock('session_heads', 'session_id', session_id, '')
    const answer = post(operation, { session_id, ...statements, ...further })
    await vi.waitFor(
      async () => expect(await lockWaits(service.databaseUrl, connection)).toBeGreaterThan(0),
      15_000,
    )
    await lock('learning_spaces', 'id', space, ' NOWAIT')
    await connection.query('COMMIT')
    expect((await answer).status).toBeLessThan(300)
  })
})
