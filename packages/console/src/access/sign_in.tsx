import { AnnalsError } from '@annals/client'
import { type FormEvent, useEffect, useRef, useState } from 'react'
import { navigate, pathHere, withQuery } from '../address/address.ts'
import { Link } from '../address/link.tsx'
import { usePageTitle } from '../parts/page_title.ts'
import { useAccounts } from './project_context.tsx'
import { signIn } from './service.ts'

const KEY_REFUSED =
  'This key is not valid, or it was revoked. Check that you copied all of it, or create another one.'

const LINK_BROKEN =
  'This link is not complete: something was cut off or changed on its way. Copy all of it, or print a new one with `npx annals console`. You can also sign in with an API key.'

/** By the reason with which the service sent a person back from signing in at the issuer. */
const NOT_SIGNED_IN = new Map([
  ['address', 'Your account has no verified address that may sign in here.'],
  ['no_project', 'You are no member of a project. Ask an administrator to invite you.'],
  ['refused', 'Signing in did not succeed. Try it again.'],
])

/** Signing in: by the printed link, at an issuer, or with an API key. */
export function SignIn() {
  usePageTitle('Sign in')
  const { accounts, change } = useAccounts()
  const [failure, setFailure] = useState(() =>
    NOT_SIGNED_IN.get(new URLSearchParams(location.search).get('sign_in_failed') ?? ''),
  )
  const [is_busy, setBusy] = useState(() => location.hash.startsWith('#code='))
  const tried = useRef(false)

  const run = async (work: () => Promise<void>, is_link = false) => {
    setBusy(true)
    setFailure(undefined)
    try {
      await work()
    } catch (error) {
      setFailure(reasonOf(error, is_link))
    } finally {
      setBusy(false)
    }
  }
  /** The service tells whether it was a project's key or the admin token. */
  const open = async (given: { code: string } | { token: string }) => {
    const opened = await signIn(given)
    if (!('is_admin' in opened)) return change({ do: 'open', account: opened })
    change({ do: 'administrate', is_admin: true })
    navigate('/admin', { replace: true })
  }

  useEffect(() => {
    if (!location.hash.startsWith('#code=') || tried.current) return
    tried.current = true
    const code = location.hash.slice('#code='.length)
    // Removed from the address first, so that it is not copied, or kept in the browser's history.
    history.replaceState(null, '', location.pathname + location.search)
    void run(() => open({ code }), true)
  })

  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const token = String(new FormData(event.currentTarget).get('token') ?? '').trim()
    if (token === '') return setFailure('Paste an API key first.')
    void run(async () => {
      await open({ token })
      const { sign_in: _, ...rest } = Object.fromEntries(new URLSearchParams(location.search))
      navigate(withQuery(pathHere() === '/' ? '/sessions' : pathHere(), rest), { replace: true })
    })
  }
  return (
    <main className="sign-in">
      <form className="sign-in-card" onSubmit={submit} aria-busy={is_busy}>
        <h1 className="wordmark">Annals</h1>
        <p className="lede">What your agents did, in order.</p>
        {accounts.has_issuer && (
          <a className="button is-primary" href="/console/oidc/start">
            Sign in with your account
          </a>
        )}
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
          You stay signed in on this browser until you sign out or do not use the console for 12 hours; the
          key itself is not kept. <code>npx annals console</code> prints a link that signs you in, and{' '}
          <code>npx annals key</code> creates a key. Enter the admin token to manage keys and projects.
        </p>
        {accounts.open.length > 0 && <Link to="/sessions">Back without adding a project</Link>}
      </form>
    </main>
  )
}

function reasonOf(error: unknown, is_link: boolean): string {
  if (!(error instanceof AnnalsError)) return String(error)
  // What is no code at all, the service refuses before it looks it up.
  if (is_link && error.error === 'invalid_request') return LINK_BROKEN
  if (error.status === 401 && !error.message.startsWith('This link')) return KEY_REFUSED
  if (error.error === 'insufficient_scope')
    return 'This key cannot read. The console needs a key with the scope "read".'
  return error.message
}
