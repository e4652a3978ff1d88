import { useProject } from '../access/project_context.tsx'
import { usePageTitle } from '../parts/page_title.ts'
import { Empty } from '../parts/states.tsx'
import { Members } from './members.tsx'
import { PersonalTokens } from './personal_tokens.tsx'
import { Reads } from './reads.tsx'

/** Who may do what in the project, and who read what: each part for those who may know. */
export function PeoplePage() {
  usePageTitle('People')
  const { scopes, person } = useProject()
  const is_admin = scopes.includes('admin')
  if (!is_admin && person === undefined)
    return (
      <Empty title="People are for administrators of the project" is_page>
        <p>
          Sign in with your account, or with a key that has the scope <code>admin</code>.
        </p>
      </Empty>
    )
  return (
    <div className="page">
      <div className="page-head">
        <h1>People</h1>
        {person !== undefined && <span className="hint">You are {person}.</span>}
      </div>
      {is_admin && <Members />}
      {person !== undefined && <PersonalTokens />}
      {is_admin && <Reads />}
    </div>
  )
}
