import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { ADMIN, ask } from '../access/service.ts'
import { ConfirmDialog } from '../parts/confirm_dialog.tsx'
import { Failure, Loading } from '../parts/states.tsx'
import { Timestamp } from '../parts/timestamp.tsx'
import { NamedForm } from './named_form.tsx'

interface Key {
  id: string
  name: string
  scopes: string[]
  created_at: string
  expires_at: string | null
  revoked_at: string | null
}

/** The API keys of a project: list, create, revoke. */
export function ProjectKeys(props: {
  project: { id: string; name: string }
  onSecret: (secret: { of: string; token: string }) => void
}) {
  const { project, onSecret } = props
  const queries = useQueryClient()
  const [is_read_only, setReadOnly] = useState(false)
  const [revoked, setRevoked] = useState<Key>()
  const path = `/console/admin/v1/projects/${project.id}/tokens`
  const keys = useQuery({
    queryKey: ['admin', 'keys', project.id],
    queryFn: ({ signal }) => ask<{ items: Key[] }>(path, { opens: ADMIN, signal }),
  })
  const refresh = () => queries.invalidateQueries({ queryKey: ['admin', 'keys', project.id] })
  const create = async (name: string) => {
    const scopes = is_read_only ? ['read'] : ['read', 'write']
    const { token } = await ask<{ token: string }>(path, {
      method: 'POST',
      opens: ADMIN,
      body: { name, scopes },
    })
    onSecret({ of: `${project.name}, ${name}`, token })
    await refresh()
  }
  if (keys.isPending) return <Loading what="keys" />
  if (keys.isError) return <Failure error={keys.error} onRetry={() => void keys.refetch()} />
  return (
    <>
      <div className="keys-table">
        <table>
          <thead>
            <tr>
              <th scope="col">Key</th>
              <th scope="col">Rights</th>
              <th scope="col">Created</th>
              <th scope="col">State</th>
              <th scope="col">
                <span className="visually-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {keys.data.items.map((key) => (
              <tr key={key.id}>
                <td>{key.name}</td>
                <td>{key.scopes.join(', ')}</td>
                <td>
                  <Timestamp at={key.created_at} />
                </td>
                <td>
                  <KeyState expires_at={key.expires_at} revoked_at={key.revoked_at} />
                </td>
                <td>
                  {key.revoked_at === null && (
                    <button
                      type="button"
                      className="button is-small is-danger-quiet"
                      onClick={() => setRevoked(key)}
                      aria-label={`Revoke ${key.name}`}
                    >
                      Revoke…
                    </button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div className="new-key">
        <NamedForm
          label={`New key for ${project.name}`}
          placeholder="Name of a new key"
          action="Create key"
          onSubmit={create}
        />
        <label className="check">
          <input
            type="checkbox"
            checked={is_read_only}
            onChange={(event) => setReadOnly(event.target.checked)}
          />{' '}
          may only read
        </label>
      </div>
      <ConfirmDialog
        title={`Revoke ${revoked?.name}`}
        is_open={revoked !== undefined}
        phrase={revoked?.name ?? ''}
        action="Revoke the key"
        onClose={() => setRevoked(undefined)}
        run={async () => {
          await ask(`${path}/${revoked!.id}`, { method: 'DELETE', opens: ADMIN })
          await refresh()
        }}
      >
        <p>Requests with this key are refused within 5 seconds. It cannot be made valid again.</p>
      </ConfirmDialog>
    </>
  )
}

function KeyState({ expires_at, revoked_at }: { expires_at: string | null; revoked_at: string | null }) {
  if (revoked_at !== null) {
    return (
      <span className="faint">
        revoked <Timestamp at={revoked_at} />
      </span>
    )
  }
  if (expires_at === null) return <>valid</>
  return (
    <>
      {Date.parse(expires_at) < Date.now() ? 'expired' : 'valid until'} <Timestamp at={expires_at} />
    </>
  )
}
