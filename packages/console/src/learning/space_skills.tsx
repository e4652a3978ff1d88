import type { Skill } from '@annals/client'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useProject } from '../access/project_context.tsx'
import { CopyButton } from '../parts/copy_button.tsx'
import { countText } from '../parts/timestamp.tsx'
import { useSkills } from './learning_query.ts'

/** The skills of a space, each with its SKILL.md. */
export function SpaceSkills({ space_id }: { space_id: string }) {
  const skills = useSkills(space_id)
  return (
    <section className="learnt" aria-label="Skills">
      <h2>
        Skills <span className="mono faint">{skills.data && countText(skills.data.length)}</span>
      </h2>
      {skills.isError && <p className="failure-line">{skills.error.message}</p>}
      {skills.data?.length === 0 && (
        <p className="hint">
          Active statements are grouped into skills by tool: approve one, and its skill appears here with its
          SKILL.md. A skill that you wrote yourself is included with <code>annals spaces skills</code>.
        </p>
      )}
      <ul>
        {skills.data?.map((skill) => (
          <li key={skill.id}>
            <SkillLine skill={skill} />
          </li>
        ))}
      </ul>
    </section>
  )
}

function SkillLine({ skill }: { skill: Skill }) {
  const [is_open, setOpen] = useState(false)
  const { name, description, source } = skill
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        <span className="mono">{name}</span> <span className="tag">{source}</span>{' '}
        <span className="hint">{description}</span>
      </summary>
      {is_open && <SkillText skill={skill} />}
    </details>
  )
}

function SkillText({ skill: { id, name, learning_space_id } }: { skill: Skill }) {
  const { annals, project_id } = useProject()
  const file = useQuery({
    queryKey: [project_id, 'learnt', learning_space_id, 'skill_file', id],
    queryFn: ({ signal }) => annals.skills.file(id, 'SKILL.md', { signal }),
  })
  if (file.isError) return <p className="failure-line">{file.error.message}</p>
  const text = file.data?.content?.raw
  if (text === undefined) return <p className="hint">Loading SKILL.md…</p>
  return <SkillFileText name={name} text={text} />
}

/** A SKILL.md as it stands, with its citations. */
export function SkillFileText({ name, text }: { name: string; text: string }) {
  return (
    <>
      <p className="card-head">
        SKILL.md
        <CopyButton what={`SKILL.md of ${name}`} text={() => text}>
          Copy
        </CopyButton>
      </p>
      <pre className="command" tabIndex={0} role="region" aria-label={`SKILL.md of ${name}`}>
        {text}
      </pre>
    </>
  )
}
