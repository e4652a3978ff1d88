import { AnnalsError } from '@annals/client'
import { type FormEvent, useEffect, useRef, useState } from 'react'
import { navigate, useAddress, withQuery } from '../address/address.ts'
import { Link } from '../address/link.tsx'
import { usePageTitle } from '../parts/page_title.ts'
import { useAccounts } from './project_context.tsx'
import { ask, exchangeCode, readAccess } from './service.ts'

const KEY_REFUSED =
  'This key is not valid, or it was revoked. Check that you copied all of it, or create another one.'

/** Signing in: by the printed link, or with an API key. */
export function SignIn() {
  usePageTitle('Sign in')
  const { accounts, change } = useAccounts()
  const { path, query } = useAddress()
  const [failure, setFailure] = useState<string>()
  const [is_busy, setBusy] = useState(() => location.hash.startsWith('#code='))
  const tried = useRef(false)

  const run = async (work: () => Promise<void>) => {
    setBusy(true)
    setFailure(undefined)
    try {
      await work()
    } catch (error) {
      setFailure(reasonOf(error))
    } finally {
      setBusy(false)
    }
  }
  const open = async (token: string) =>
    change({ do: 'open', account: { token, ...(await readAccess(token)) } })

  useEffect(() => {
    if (!location.hash.startsWith('#code=') || tried.current) return
    tried.current = true
    const code = location.hash.slice('#code='.length)
    // Removed from the address first, so that it is not copied, or kept in the browser's history.
    history.replaceState(null, '', location.pathname + location.search)
    void run(async () => open(await exchangeCode(code)))
  })

  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const token = String(new FormData(event.currentTarget).get('token') ?? '').trim()
    if (token === '') return setFailure('Paste an API key first.')
    void run(async () => {
      await openAny(token)
      const { sign_in: _, ...rest } = Object.fromEntries(query)
      navigate(withQuery(path === '/' ? '/sessions' : path, rest), { replace: true })
    })
  }
  /** Accepts a project's key or the admin token, without asking which it is. */
  const openAny = async (token: string) => {
    try {
      await open(token)
    } catch (error) {
      if (!(error instanceof AnnalsError) || error.status !== 401) throw error
      await ask('/admin/v1/projects', { token }).catch(() => {
        // The service's message about a missing header is meant for programmers.
        throw new AnnalsError({ status: 401, error: error.error, message: KEY_REFUSED })
      })
      change({ do: 'administrate', admin_token: token })
      navigate('/admin', { replace: true })
    }
  }
  return (
    <main className="sign-in">
      <form className="sign-in-card" onSubmit={submit} aria-busy={is_busy}>
        <h1 className="wordmark">Annals</h1>
        <p className="lede">What your agents did, in order.</p>
        <label className="field">
          <span>API key</span>
          <input
            name="token"
            type="password"
            autoComplete="off"
            spellCheck={false}
            placeholder="sk-annals-…"
            autoFocus
          />
        </label>
        <button className="button is-primary" type="submit" disabled={is_busy}>
          {is_busy ? 'Signing in…' : 'Sign in'}
        </button>
        <p className="failure-line" role="alert">
          {failure}
        </p>
        <p className="hint">
          The key is kept only for this tab. The first start of Annals prints a key; with its embedded
          database, every start also prints a link that signs you in. <code>npx annals token create</code>{' '}
          creates another key. Enter the admin token to manage keys and projects.
        </p>
        {accounts.open.length > 0 && <Link to="/sessions">Back without adding a project</Link>}
      </form>
    </main>
  )
}

function reasonOf(error: unknown): string {
  if (!(error instanceof AnnalsError)) return String(error)
  if (error.error === 'route_not_found')
    return 'Sign-in links work only if Annals runs on your machine with its embedded database. Use an API key.'
  if (error.error === 'insufficient_scope')
    return 'This key cannot read. The console needs a key with the scope "read".'
  return error.message
}
