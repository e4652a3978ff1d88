import type { SkillVersion } from '@annals/client'
import { Timestamp } from '../parts/timestamp.tsx'
import { useHistory } from './learning_query.ts'
import { MoreButton } from './more_button.tsx'
import { SkillFileText } from './space_skills.tsx'

const AUTHORS = { person: 'by a person', model: 'by a model', erasure: 'by an erasure' }

/** Each change of a skill of a space: what, by whom and why; and what SKILL.md was then. */
export function SpaceHistory({ space_id }: { space_id: string }) {
  const history = useHistory(space_id)
  return (
    <section className="learnt" aria-label="History">
      <h2>History</h2>
      {history.isError && <p className="failure-line">{history.error.message}</p>}
      {history.isSuccess && history.items.length === 0 && (
        <p className="hint">
          No skill has changed yet. Each approval, edit and revocation of an active statement is kept here.
        </p>
      )}
      <ol>
        {history.items.map((version) => (
          <li key={version.id}>
            <Version version={version} />
          </li>
        ))}
      </ol>
      <MoreButton list={history} />
    </section>
  )
}

function Version({ version: { skill, author, reason, text, created_at } }: { version: SkillVersion }) {
  return (
    <details>
      <summary>
        <Timestamp at={created_at} /> <span className="mono">{skill}</span> {reason}{' '}
        <span className="hint">{AUTHORS[author]}</span>
      </summary>
      {text === null ? (
        <p className="faint">The text of this version is gone, because something in it was revoked since.</p>
      ) : (
        <SkillFileText name={skill} text={text} />
      )}
    </details>
  )
}
