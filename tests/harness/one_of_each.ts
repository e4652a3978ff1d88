import { randomUUID } from 'node:crypto'
import type { ApiClient } from './api_client.ts'
import { putBlob, sha256Of } from './blobs.ts'
import { expectOk } from './expectations.ts'
import { mixedEntries, newSessionLog, type SessionLog } from './session_log.ts'
import { skillZip, uploadSkill } from './skills.ts'

const ASSET = Buffer.from('test')
/** Of the blob that the session refers to: the description's example. */
export const ASSET_SHA256 = sha256Of(ASSET)

/** One of each resource that a project has: their ids by the names of the parameters in paths, and the session's log. */
export async function oneOfEach(
  url: string,
  client: ApiClient,
  token: string,
): Promise<{ ids: Record<string, string>; log: SessionLog }> {
  const created = async (path: string, body: unknown) =>
    expectOk(await client.request<{ id: string }>('POST', `/api/v1/${path}`, { body }), 201).id
  const identifier = `user-${randomUUID()}`
  const log = await newSessionLog(client, { user: identifier, configs: { secret: 1 } })
  const { items } = expectOk(await log.batch(mixedEntries(4)), 201)
  await putBlob(url, token, ASSET)
  expectOk(await log.addEvent('file', { annals_blob: ASSET_SHA256, media_type: 'text/plain' }))
  const learning_space_id = await created('learning_spaces', { user: identifier, meta: { secret: 1 } })
  const statement_id = await created(`learning_spaces/${learning_space_id}/statements`, { text: 'A secret.' })
  const request_id = await created(`session/${log.id}/requests`, { kind: 'approval', text: 'A secret.' })
  const input = { mode: 'queue', kind: 'event', type: 'secret', data: {} }
  const input_id = await created(`session/${log.id}/inbox`, input)
  // The last of what appends: from then on, nothing waits to be delivered.
  const webhook_id = await created('webhooks', { url: 'https://example.com/hook', events: ['event.never'] })
  const zip = skillZip('secret', { 'own.md': identifier })
  const uploaded = await uploadSkill(url, token, zip, { user: identifier })
  const { data: skill } = (await uploaded.json()) as { data: { id: string } }
  const of_session = { session_id: log.id, message_id: items[0]!.id, identifier }
  return {
    ids: {
      ...of_session,
      request_id,
      input_id,
      learning_space_id,
      statement_id,
      webhook_id,
      skill_id: skill.id,
    },
    log,
  }
}
