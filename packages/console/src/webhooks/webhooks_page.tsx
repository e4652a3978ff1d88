import type { Webhook } from '@annals/client'
import '../styles/webhooks.css'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useAccounts, useProject } from '../access/project_context.tsx'
import { NewSecret } from '../admin/new_secret.tsx'
import { ConfirmDialog } from '../parts/confirm_dialog.tsx'
import { usePageTitle } from '../parts/page_title.ts'
import { Empty, Failure, Loading } from '../parts/states.tsx'
import { countText, Timestamp } from '../parts/timestamp.tsx'
import { mayAdministrate } from './may_administrate.ts'
import { NewWebhookForm } from './new_webhook_form.tsx'

const EVERY_MS = 5_000
/** The service counts no further. */
const WAITING_MAX = 1_000

/** Where the project is told of new entries, and what was not delivered. */
export function WebhooksPage() {
  usePageTitle('Webhooks')
  const project = useProject()
  if (!mayAdministrate(useAccounts().accounts, project))
    return (
      <Empty title="Webhooks are for administrators of the project" is_page>
        <p>
          Sign in with your account, or with a key that has the scope <code>admin</code>.
        </p>
      </Empty>
    )
  return <Webhooks />
}

function Webhooks() {
  const { annals, project_id, may_write } = useProject()
  const queries = useQueryClient()
  const [secret, setSecret] = useState<{ of: string; token: string }>()
  const [deleted, setDeleted] = useState<Webhook>()
  const queryKey = [project_id, 'webhooks']
  const webhooks = useQuery({
    queryKey,
    queryFn: ({ signal }) => annals.webhooks.list({ signal }),
    refetchInterval: EVERY_MS,
  })
  const refresh = () => queries.invalidateQueries({ queryKey })
  const create = async (webhook: { url: string; events: string[] }) => {
    const made = await annals.webhooks.create(webhook)
    setSecret({ of: made.url, token: made.secret })
    await refresh()
  }
  if (webhooks.isPending) return <Loading what="webhooks" />
  if (webhooks.isError && !webhooks.data)
    return <Failure is_page error={webhooks.error} onRetry={() => void webhooks.refetch()} />
  return (
    <div className="page">
      <div className="page-head">
        <h1>Webhooks</h1>
        <span className="hint">Each posts new entries of the project to its URL.</span>
      </div>
      {secret && <NewSecret what="signing secret" {...secret} onClose={() => setSecret(undefined)} />}
      {webhooks.data.map((webhook) => (
        <WebhookCard key={webhook.id} {...{ webhook, may_write }} onDelete={() => setDeleted(webhook)} />
      ))}
      {webhooks.data.length === 0 && <p className="hint">The project has no webhook.</p>}
      {may_write && <NewWebhookForm onSubmit={create} />}
      <ConfirmDialog
        title="Delete this webhook"
        is_open={deleted !== undefined}
        phrase={deleted ? hostOf(deleted.url) : ''}
        action="Delete the webhook"
        onClose={() => setDeleted(undefined)}
        run={async () => {
          await annals.webhooks.delete(deleted!.id)
          await refresh()
        }}
      >
        <p className="webhook-url">{deleted?.url}</p>
        <p>What was not delivered is dropped.</p>
      </ConfirmDialog>
    </div>
  )
}

function WebhookCard(props: { webhook: Webhook; may_write: boolean; onDelete: () => void }) {
  const { webhook, may_write, onDelete } = props
  return (
    <section className="admin-project webhook" aria-label={`Webhook ${webhook.url}`}>
      <header>
        <h2 className="webhook-url">{webhook.url}</h2>
        <span className="hint">
          created <Timestamp at={webhook.created_at} />
        </span>
        {may_write && (
          <button type="button" className="button is-small is-danger-quiet" onClick={onDelete}>
            Delete…
          </button>
        )}
      </header>
      <dl>
        <div>
          <dt>Sends</dt>
          <dd className="mono">{webhook.events.join(', ')}</dd>
        </div>
        <div>
          <dt>Waiting</dt>
          <dd>{waitingText(webhook)}</dd>
        </div>
        <div>
          <dt>Given up</dt>
          <dd className={webhook.given_up > 0 ? 'failure-line' : ''}>{givenUpText(webhook.given_up)}</dd>
        </div>
        <div>
          <dt>Last failure</dt>
          <dd>
            {webhook.last_error === null || webhook.last_error_at === null ? (
              'none'
            ) : (
              <>
                <span className={isFailing(webhook) ? 'failure-line' : 'hint'}>{webhook.last_error}</span>{' '}
                <Timestamp at={webhook.last_error_at} />
              </>
            )}
          </dd>
        </div>
      </dl>
    </section>
  )
}

/** Deliveries may have gone well since the last failure. */
function isFailing({ waiting_sessions, given_up }: Webhook): boolean {
  return waiting_sessions > 0 || given_up > 0
}

function waitingText({ waiting_sessions: waiting }: Webhook): string {
  if (waiting === 0) return 'nothing'
  const sessions = waiting === 1 ? '1 session' : `${countText(waiting)} sessions`
  return `entries of ${waiting >= WAITING_MAX ? '≥ ' : ''}${sessions}`
}

function givenUpText(given_up: number): string {
  if (given_up === 0) return 'none'
  return `${given_up === 1 ? '1 entry' : `${countText(given_up)} entries`}, not delivered within a day`
}

/** The text to type to delete a webhook: two may share a host, and the dialog shows the whole URL. */
function hostOf(url: string): string {
  return new URL(url).host
}
