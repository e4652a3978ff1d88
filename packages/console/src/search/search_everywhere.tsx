import type { FormEvent } from 'react'
import { navigate, useAddress, withQuery } from '../address/address.ts'

/** The search across all sessions, on every page. */
export function SearchEverywhere() {
  const { path, query } = useAddress()
  const is_here = path === '/search'
  const q = is_here ? (query.get('q') ?? '') : ''
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const text = String(new FormData(event.currentTarget).get('q')).trim()
    if (text) navigate(withQuery('/search', { ...(is_here && Object.fromEntries(query)), q: text }))
  }
  return (
    <form className="search-everywhere" role="search" aria-label="All sessions" onSubmit={submit} key={q}>
      <label>
        <span className="visually-hidden">Search all sessions</span>
        <input
          name="q"
          type="search"
          data-search-everywhere
          defaultValue={q}
          placeholder="Search sessions"
          maxLength={1024}
          spellCheck={false}
          autoComplete="off"
          enterKeyHint="search"
        />
      </label>
      <span className="mono key" aria-hidden="true">
        /
      </span>
    </form>
  )
}
