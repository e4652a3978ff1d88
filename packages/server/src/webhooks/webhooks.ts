import { randomBytes } from 'node:crypto'
import { FINISH_CHANGES } from '@annals/kits/changes/change_queries.js'
import type { Consumer } from '@annals/kits/changes/consumer.js'
import { useConsumer } from '@annals/kits/changes/project_consumers.js'
import { AnnalsError, invalidRequest, notFound } from '@annals/kits/errors.js'
import { newId } from '@annals/kits/ids.js'
import { namesPrivateAddress } from '@annals/kits/outgoing/public_address.js'
import type { Database, Tenant } from '@annals/kits/postgres/database.js'
import { isForeignKeyViolation } from '@annals/kits/postgres/database_errors.js'
import { call } from '@annals/kits/postgres/stored_function.js'
import { requireProject } from '../projects/projects.js'
import {
  ADD_DELIVERIES,
  COUNT_WEBHOOKS,
  CREATE_WEBHOOK,
  DELETE_WEBHOOK,
  FIND_CLOCK_SET_BACK,
  FOLLOW_CLOCK,
  KEEP_CONSUMER,
  LEAVE_CONSUMER,
  LIST_WEBHOOKS,
  READ_NEW_WEBHOOK,
  WEBHOOKS_ARE_BEHIND,
} from './webhook_queries.js'

const WEBHOOKS_MAX = 10
const SECRET_BYTES = 32

export interface NewWebhook {
  url: string
  events: readonly string[]
  secret?: string | undefined
}

/**
 * Creates a webhook. Returns it as JSON with its secret. `to_private`: whether it may name any address.
 * @throws AnnalsError invalid_request, too_many_webhooks, unavailable
 */
export async function createWebhook(
  tenant: Tenant<Database>,
  { url, events, secret = newSecret() }: NewWebhook,
  to_private: boolean,
): Promise<string> {
  const parsed = checkUrl(url, to_private)
  const { database, project_id } = tenant
  await useConsumer(tenant, WEBHOOKS)
  const create = database.transaction(async (connection) => {
    const [kept] = await connection.query(KEEP_CONSUMER, [project_id, WEBHOOKS])
    if (!kept) {
      await requireProject({ database: connection, project_id })
      throw new AnnalsError(
        'unavailable',
        "The project's last webhook is still being removed; retry shortly.",
      )
    }
    const [row] = await connection.query(COUNT_WEBHOOKS, [project_id])
    if (Number(row!.webhooks) >= WEBHOOKS_MAX)
      throw new AnnalsError(
        'too_many_webhooks',
        `A project may have ${WEBHOOKS_MAX} webhooks. Delete one, or add events to an existing one.`,
      )
    const id = newId()
    await connection.query(CREATE_WEBHOOK, [project_id, id, parsed, events, secret])
    const [made] = await connection.query(READ_NEW_WEBHOOK, [project_id, id])
    return made!.json!
  })
  return create.catch(async (error) => {
    if (isForeignKeyViolation(error)) await requireProject(tenant)
    throw error
  })
}

export async function listWebhooks({ database, project_id }: Tenant<Database>): Promise<string[]> {
  return (await database.query(LIST_WEBHOOKS, [project_id])).map(({ json }) => json!)
}

export async function deleteWebhook({ database, project_id }: Tenant<Database>, id: string): Promise<void> {
  await database.transaction(async (connection) => {
    const gone = await connection.query(DELETE_WEBHOOK, [project_id, id])
    if (gone.length === 0) throw notFound('webhook')
    await connection.query(LEAVE_CONSUMER, [project_id, WEBHOOKS])
  })
}

function checkUrl(text: string, to_private: boolean): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.username !== '' || url.password !== '' || url.hash !== '')
    throw invalidRequest('/url must be a URL without a user name and without a fragment.')
  if (!to_private && namesPrivateAddress(url))
    throw invalidRequest(
      '/url must not name localhost, or a loopback, link-local or private address, unless the operator has set ANNALS_WEBHOOKS_TO_PRIVATE=true.',
    )
  return url.href
}

function newSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`
}

const WEBHOOKS = 'webhooks'

/**
 * Turns changed sessions into deliveries: notes up to which seq each webhook of the project is to be told of them.
 * `onDeliveries` hears of the webhooks.
 */
export function webhookConsumer(
  onDeliveries: (project_id: string, webhook_ids: Set<string>) => void,
): Consumer {
  return {
    name: WEBHOOKS,
    sessions_max: 500,
    // Deliveries read the entries, when it is their turn.
    readsEntries: false,
    isBehind: WEBHOOKS_ARE_BEHIND,
    // Deliveries go with their webhooks.
    erase: [],
    consume: async ({ project_id, sessions }) => {
      const ids = sessions.map(({ session_id }) => session_id)
      const after = sessions.map(({ after_seq }) => after_seq)
      const last = sessions.map(({ last_seq }) => last_seq)
      return async (connection) => {
        const [stepped] = await connection.query(FIND_CLOCK_SET_BACK, [project_id, WEBHOOKS, ids])
        if (stepped) await connection.query(FOLLOW_CLOCK, [project_id, stepped.at!])
        const added = await call(connection, ADD_DELIVERIES, project_id, ids, after, last)
        await connection.query(FINISH_CHANGES.cursors, [project_id, WEBHOOKS, ids, last])
        onDeliveries(project_id, new Set(added?.split(',')))
      }
    },
  }
}
