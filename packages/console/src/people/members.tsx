import type { Member } from '@annals/client'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { useProject } from '../access/project_context.tsx'
import { ConfirmDialog } from '../parts/confirm_dialog.tsx'
import { Failure, Loading } from '../parts/states.tsx'
import { Timestamp } from '../parts/timestamp.tsx'

const ROLES = ['viewer', 'member', 'admin'] as const
type Role = (typeof ROLES)[number]

/** The members of the project: list, invite, change, remove. */
export function Members() {
  const { annals, project_id } = useProject()
  const queries = useQueryClient()
  const [removed, setRemoved] = useState<Member>()
  const [failure, setFailure] = useState<string>()
  const key = [project_id, 'members']
  const members = useQuery({ queryKey: key, queryFn: ({ signal }) => annals.members.list({ signal }) })
  const refresh = () => queries.invalidateQueries({ queryKey: key })
  /** Does something, shows what it came to, and tells whether it went well. */
  const attempt = async (work: () => Promise<unknown>) => {
    const failed = await work().then(
      () => undefined,
      (error: Error) => error.message,
    )
    setFailure(failed)
    await refresh()
    return failed === undefined
  }
  const invite = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = event.currentTarget
    const data = new FormData(form)
    const email = String(data.get('email')).trim()
    if (email === '') return setFailure('Enter an address first.')
    if (await attempt(() => annals.members.invite({ email, role: data.get('role') as Role }))) form.reset()
  }
  return (
    <section className="admin-project" aria-label="Members">
      <header>
        <h2>Members</h2>
        <span className="hint">
          Whoever first signs in with an invited address becomes the member. Nothing is sent to it.
        </span>
      </header>
      {members.isPending && <Loading what="members" />}
      {members.isError && <Failure error={members.error} onRetry={() => void members.refetch()} />}
      {members.data && members.data.length > 0 && (
        <div className="keys-table is-wide">
          <table>
            <thead>
              <tr>
                <th scope="col">Address</th>
                <th scope="col">Role</th>
                <th scope="col">Added</th>
                <th scope="col">State</th>
                <th scope="col">
                  <span className="visually-hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {members.data.map((member) => (
                <tr key={member.id}>
                  <td>{member.email}</td>
                  <td>
                    <RoleField
                      label={`Role of ${member.email}`}
                      value={member.role}
                      onChange={(role) => void attempt(() => annals.members.change(member.id, role))}
                    />
                  </td>
                  <td>
                    <Timestamp at={member.created_at} />
                  </td>
                  <td>{stateOf(member)}</td>
                  <td>
                    <button
                      type="button"
                      className="button is-small is-danger-quiet"
                      onClick={() => setRemoved(member)}
                      aria-label={`Remove ${member.email}`}
                    >
                      Remove…
                    </button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <form className="named-form" onSubmit={(event) => void invite(event)}>
        <label>
          <span className="visually-hidden">Address of a new member</span>
          <input name="email" type="email" placeholder="ada@example.com" autoComplete="off" data-search />
        </label>
        <RoleField name="role" label="Role of the new member" value="member" />
        <button type="submit" className="button">
          Invite
        </button>
        <span className="failure-line" role="alert">
          {failure}
        </span>
      </form>
      <ConfirmDialog
        title={`Remove ${removed?.email}`}
        is_open={removed !== undefined}
        phrase={removed?.email ?? ''}
        action="Remove the member"
        onClose={() => setRemoved(undefined)}
        run={async () => {
          await annals.members.remove(removed!.id)
          await refresh()
        }}
      >
        <p>Sessions in the console and personal tokens of the member end within 5 seconds.</p>
      </ConfirmDialog>
    </section>
  )
}

function RoleField(props: {
  label: string
  value: Role | null
  name?: string
  onChange?: (role: Role) => void
}) {
  const { label, value, name, onChange } = props
  // A change that is refused shows the role that holds.
  const shown = onChange ? { value: value ?? '' } : { defaultValue: value ?? '' }
  return (
    <label>
      <span className="visually-hidden">{label}</span>
      <select name={name} {...shown} onChange={(event) => onChange?.(event.target.value as Role)}>
        {value === null && <option value="">none</option>}
        {ROLES.map((role) => (
          <option key={role} value={role}>
            {role}
          </option>
        ))}
      </select>
    </label>
  )
}

function stateOf({ has_signed_in, is_from_group }: Member): string {
  if (is_from_group) return 'by a group'
  return has_signed_in ? 'signed in' : 'invited'
}
