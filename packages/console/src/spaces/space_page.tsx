import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useProject } from '../access/project_context.tsx'
import { navigate } from '../address/address.ts'
import { Link } from '../address/link.tsx'
import type { Json } from '../json/exact_json.ts'
import { JsonTree } from '../json/json_tree.tsx'
import { SpaceHistory } from '../learning/space_history.tsx'
import { HowItLearns } from '../learning/space_policy.tsx'
import { SpaceSkills } from '../learning/space_skills.tsx'
import { Statements } from '../learning/statements.tsx'
import { ConfirmDialog } from '../parts/confirm_dialog.tsx'
import { CopyButton } from '../parts/copy_button.tsx'
import { usePageTitle } from '../parts/page_title.ts'
import { Failure, Loading } from '../parts/states.tsx'
import { Timestamp } from '../parts/timestamp.tsx'
import { useIdentifier } from '../sessions/facts_query.ts'
import { MetaEditor } from './meta_editor.tsx'
import { spaceName } from './space_name.ts'
import { SpaceSessions } from './space_sessions.tsx'
import '../styles/learning.css'

/** One learning space: its user and its content. */
export function SpacePage({ id }: { id: string }) {
  usePageTitle(id, 'Learning spaces')
  const { annals, project_id, may_write } = useProject()
  const [erases, setErases] = useState(false)
  const [edits, setEdits] = useState(false)
  const queries = useQueryClient()
  const space = useQuery({
    queryKey: [project_id, 'space', id],
    queryFn: ({ signal }) => annals.learningSpaces.get(id, { signal }),
  })
  const user_id = space.data?.user_id ?? null
  const user = useIdentifier(user_id)
  const erase = async () => {
    await annals.learningSpaces.delete(id)
    await queries.invalidateQueries({ queryKey: [project_id, 'spaces'] })
    navigate('/spaces')
  }
  if (space.isError) return <Failure is_page error={space.error} onRetry={() => void space.refetch()} />
  if (!space.data) return <Loading what="the learning space" />
  const { meta, created_at, updated_at } = space.data
  const is_empty = Object.keys(meta).length === 0
  const name = spaceName(meta)
  return (
    <div className="page is-detail">
      <p className="crumbs">
        <Link to="/spaces">Learning spaces</Link>
        {name !== undefined && (
          <>
            <span aria-hidden="true"> / </span>
            <span className="mono">{id}</span>
          </>
        )}
      </p>
      <div className="page-head">
        <h1 className={name === undefined ? 'mono' : ''}>{name ?? id}</h1>
        <CopyButton what="the id" text={() => id}>
          Copy id
        </CopyButton>
      </div>
      <dl className="facts">
        <div>
          <dt>for</dt>
          <dd>
            {user_id === null ? (
              'the whole project'
            ) : user ? (
              <Link to={`/users/${encodeURIComponent(user)}`}>{user}</Link>
            ) : (
              '…'
            )}
          </dd>
        </div>
        <div>
          <dt>created</dt>
          <dd>
            <Timestamp at={created_at} />
          </dd>
        </div>
        <div>
          <dt>changed</dt>
          <dd>
            <Timestamp at={updated_at} />
          </dd>
        </div>
      </dl>
      <Statements space_id={id} />
      <SpaceSkills space_id={id} />
      <SpaceHistory space_id={id} />
      <HowItLearns space_id={id} />
      <SpaceSessions id={id} />
      <section className="card is-json">
        <p className="card-head">
          Meta
          <CopyButton what="the meta as JSON" text={() => JSON.stringify(meta, null, 2)}>
            Copy JSON
          </CopyButton>
          {may_write && !edits && (
            <button type="button" className="button is-small" onClick={() => setEdits(true)}>
              Edit
            </button>
          )}
        </p>
        {edits ? (
          <MetaEditor space={space.data} onClose={() => setEdits(false)} />
        ) : is_empty ? (
          <p className="faint">Nothing yet.</p>
        ) : (
          <JsonTree value={meta as Json} />
        )}
      </section>
      {may_write && (
        <section className="danger-zone">
          <h2>Delete</h2>
          <p>Deletes this learning space and what it has learnt. Sessions are kept.</p>
          <button type="button" className="button is-danger-quiet" onClick={() => setErases(true)}>
            Delete this learning space…
          </button>
        </section>
      )}
      <ConfirmDialog
        title="Delete this learning space"
        is_open={erases}
        phrase={id.slice(-8)}
        action="Delete for good"
        onClose={() => setErases(false)}
        run={erase}
      >
        <p>
          This permanently deletes the learning space, its statements, learnt skills and history, and its meta
          ({Object.keys(meta).length} keys).
        </p>
      </ConfirmDialog>
    </div>
  )
}
