import { useQuery } from '@tanstack/react-query'
import { type FormEvent, useEffect, useState } from 'react'
import { useProject } from '../access/project_context.tsx'

const KNOWN_MAX = 200
const KNOWN_MS = 30_000

/** Filters by user: suggests the newest users, and applies a complete name at once. */
export function UserField({
  user,
  onChange,
}: {
  user: string | undefined
  onChange: (user: string | undefined) => void
}) {
  const [text, setText] = useState(user ?? '')
  const [is_used, setIsUsed] = useState(false)
  const known = useKnownUsers(is_used)
  useEffect(() => setText(user ?? ''), [user])
  const apply = (typed: string) => onChange(typed.trim() || undefined)
  return (
    <form
      className="user-field"
      onSubmit={(event: FormEvent) => {
        event.preventDefault()
        apply(text)
      }}
    >
      <label>
        <span>User</span>
        <input
          data-search
          list="known-users"
          value={text}
          onFocus={() => setIsUsed(true)}
          onChange={({ target }) => {
            setText(target.value)
            if (known.includes(target.value)) apply(target.value)
          }}
          onBlur={() => apply(text)}
          placeholder="anyone; full name"
          autoComplete="off"
          spellCheck={false}
          enterKeyHint="search"
        />
      </label>
      <datalist id="known-users">
        {known.map((identifier) => (
          <option key={identifier} value={identifier} />
        ))}
      </datalist>
      {user !== undefined && (
        <button type="button" aria-label="Show the sessions of all users" onClick={() => onChange(undefined)}>
          ✕
        </button>
      )}
    </form>
  )
}

/** The identifiers of the newest users; others must be typed completely. */
export function useKnownUsers(is_wanted: boolean): string[] {
  const { annals, project_id } = useProject()
  const { data } = useQuery({
    queryKey: [project_id, 'known_users'],
    queryFn: async ({ signal }) => {
      const { items } = await annals.users.list({ limit: KNOWN_MAX, time_desc: true }, { signal }).page()
      return items.map(({ identifier }) => identifier)
    },
    enabled: is_wanted,
    staleTime: KNOWN_MS,
  })
  return data ?? []
}
