import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useProject } from '../access/project_context.tsx'
import { NamedForm } from '../admin/named_form.tsx'
import { NewSecret } from '../admin/new_secret.tsx'
import { Failure, Loading } from '../parts/states.tsx'
import { Timestamp } from '../parts/timestamp.tsx'

const DAYS = [7, 30, 90, 366]

/** One's own personal tokens: list, create, revoke. */
export function PersonalTokens() {
  const { annals, project_id } = useProject()
  const queries = useQueryClient()
  const [days, setDays] = useState(30)
  const [is_read_only, setReadOnly] = useState(false)
  const [secret, setSecret] = useState<{ of: string; token: string }>()
  const [failure, setFailure] = useState<string>()
  const key = [project_id, 'personal_tokens']
  const tokens = useQuery({ queryKey: key, queryFn: ({ signal }) => annals.personalTokens.list({ signal }) })
  const refresh = () => queries.invalidateQueries({ queryKey: key })
  const create = async (name: string) => {
    const scopes = is_read_only ? { scopes: ['read' as const] } : {}
    const { token } = await annals.personalTokens.create({ name, expires_in_days: days, ...scopes })
    setSecret({ of: name, token })
    await refresh()
  }
  const revoke = async (id: string) => {
    setFailure(undefined)
    await annals.personalTokens.revoke(id).catch((error: Error) => setFailure(error.message))
    await refresh()
  }
  return (
    <section className="admin-project" aria-label="Your personal tokens">
      <header>
        <h2>Your personal tokens</h2>
        <span className="hint">They allow what you may do at the time, and end with your membership.</span>
      </header>
      {secret && <NewSecret {...secret} onClose={() => setSecret(undefined)} />}
      {tokens.isPending && <Loading what="tokens" />}
      {tokens.isError && <Failure error={tokens.error} onRetry={() => void tokens.refetch()} />}
      {tokens.data && tokens.data.length > 0 && (
        <div className="keys-table">
          <table>
            <thead>
              <tr>
                <th scope="col">Token</th>
                <th scope="col">Rights</th>
                <th scope="col">Created</th>
                <th scope="col">Expires</th>
                <th scope="col">
                  <span className="visually-hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {tokens.data.map(({ id, name, scopes, created_at, expires_at }) => (
                <tr key={id}>
                  <td>{name}</td>
                  <td>{scopes.length > 1 ? 'yours' : scopes.join()}</td>
                  <td>
                    <Timestamp at={created_at} />
                  </td>
                  <td>{expires_at && <Timestamp at={expires_at} />}</td>
                  <td>
                    <button
                      type="button"
                      className="button is-small is-danger-quiet"
                      onClick={() => void revoke(id)}
                      aria-label={`Revoke ${name}`}
                    >
                      Revoke
                    </button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <div className="new-key">
        <NamedForm
          label="New personal token"
          placeholder="Name of a new token"
          action="Create token"
          onSubmit={create}
        />
        <label className="check">
          valid for{' '}
          <select value={days} onChange={(event) => setDays(Number(event.target.value))}>
            {DAYS.map((count) => (
              <option key={count} value={count}>
                {count} days
              </option>
            ))}
          </select>
        </label>
        <label className="check">
          <input
            type="checkbox"
            checked={is_read_only}
            onChange={(event) => setReadOnly(event.target.checked)}
          />{' '}
          may only read
        </label>
        {failure && (
          <span className="failure-line" role="alert">
            {failure}
          </span>
        )}
      </div>
    </section>
  )
}
