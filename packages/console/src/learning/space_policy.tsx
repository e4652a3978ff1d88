import type { SpacePolicy, SpaceUsage } from '@annals/client'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { useProject } from '../access/project_context.tsx'
import { say } from '../parts/notice.tsx'
import { countText } from '../parts/timestamp.tsx'

const MODES: Record<SpacePolicy['mode'], string> = {
  suggest: 'Every statement waits for a person.',
  auto: 'What a model says becomes active once two users support it; what rules find waits for a person.',
  off: 'Nothing is learnt.',
}
const TOKENS_MAX = 1_000_000_000

/** How a space learns, what it has used of a model, and the form that changes the policy. */
export function HowItLearns({ space_id }: { space_id: string }) {
  const { annals, project_id, may_write } = useProject()
  const queryKey = [project_id, 'learnt', space_id, 'policy']
  const queries = useQueryClient()
  const [failure, setFailure] = useState<string>()
  const policy = useQuery({
    queryKey,
    queryFn: ({ signal }) => annals.learningSpaces.policy(space_id, { signal }),
  })
  const save = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const tokens = String(form.get('tokens')).trim()
    const { max_tokens_per_day: _, ...kept } = policy.data!
    const budget = tokens === '' ? {} : { max_tokens_per_day: Number(tokens) }
    const changed = { ...kept, mode: form.get('mode') as SpacePolicy['mode'], ...budget }
    try {
      await annals.learningSpaces.setPolicy(space_id, changed)
      setFailure(undefined)
      say('Saved how this space learns.')
    } catch (error) {
      setFailure((error as Error).message)
    }
    await queries.invalidateQueries({ queryKey: [project_id, 'learnt', space_id] })
  }
  return (
    <section className="learnt" aria-label="How it learns">
      <h2>How it learns</h2>
      {policy.isError && <p className="failure-line">{policy.error.message}</p>}
      {policy.data && (
        // Again when another person has changed the policy.
        <form key={JSON.stringify(policy.data)} className="policy" onSubmit={(event) => void save(event)}>
          <fieldset className="policy" disabled={!may_write}>
            <legend className="visually-hidden">Policy</legend>
            <label className="field">
              <span>Mode</span>
              <select name="mode" defaultValue={policy.data.mode}>
                {Object.keys(MODES).map((mode) => (
                  <option key={mode}>{mode}</option>
                ))}
              </select>
            </label>
            <label className="field">
              <span>Tokens in 24 hours (empty: no limit)</span>
              <input
                name="tokens"
                type="number"
                min={0}
                max={TOKENS_MAX}
                defaultValue={policy.data.max_tokens_per_day}
              />
            </label>
            {may_write && (
              <button type="submit" className="button">
                Save
              </button>
            )}
          </fieldset>
          <p className="hint">{MODES[policy.data.mode]}</p>
          <p className="failure-line" role="alert">
            {failure}
          </p>
        </form>
      )}
      <Spent space_id={space_id} />
    </section>
  )
}

/** What was spent on a model: against the budget, and by day. */
function Spent({ space_id }: { space_id: string }) {
  const { annals, project_id } = useProject()
  const usage = useQuery({
    queryKey: [project_id, 'learnt', space_id, 'usage'],
    queryFn: ({ signal }) => annals.learningSpaces.usage(space_id, { signal }),
  })
  if (usage.isError) return <p className="failure-line">{usage.error.message}</p>
  if (!usage.data) return <p className="hint">Loading what was spent…</p>
  const { tokens, days } = usage.data
  if (days.length === 0) return <p className="hint">No model was asked in the last 30 days.</p>
  return (
    <>
      <p>
        {countText(tokens.used)}
        {tokens.max !== null && ` of ${countText(tokens.max)}`} tokens in the last 24 hours
      </p>
      <table aria-label="What was spent on a model, by day">
        <thead>
          <tr>
            {['Day', 'Asked to', 'Calls', 'Failed', 'Tokens in', 'Tokens out'].map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {days.map((day) => (
            <Day key={`${day.day} ${day.step}`} {...day} />
          ))}
        </tbody>
      </table>
    </>
  )
}

function Day({ day, step, calls, failed, tokens_in, tokens_out }: SpaceUsage['days'][number]) {
  return (
    <tr>
      <th scope="row">{day}</th>
      <td>{step}</td>
      {Object.entries({ calls, failed, tokens_in, tokens_out }).map(([name, count]) => (
        <td key={name} className="mono">
          {countText(count)}
        </td>
      ))}
    </tr>
  )
}
