import type { LearningSpace } from '@annals/client'
import { writeJson } from '@annals/messages/json'
import { useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { useProject } from '../access/project_context.tsx'
import { isObject, parsedText } from '../json/exact_json.ts'
import { say } from '../parts/notice.tsx'

/** Changes a learning space's meta. */
export function MetaEditor({ space, onClose }: { space: LearningSpace; onClose: () => void }) {
  const { annals, project_id } = useProject()
  const queries = useQueryClient()
  const [failure, setFailure] = useState<string>()
  const save = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const meta = parsedText(String(new FormData(event.currentTarget).get('meta')))
    if (!isObject(meta)) return setFailure('Meta must be a JSON object, such as {"topic": "refunds"}.')
    // The API merges: what was taken out is deleted by null, and what nobody changed here is not sent.
    const before = space.meta as typeof meta
    const isKept = (key: string) =>
      Object.hasOwn(meta, key) &&
      Object.hasOwn(before, key) &&
      writeJson(meta[key]) === writeJson(before[key])
    const keys = [...new Set([...Object.keys(before), ...Object.keys(meta)])].filter((key) => !isKept(key))
    const changes = Object.fromEntries(keys.map((key) => [key, meta[key] ?? null]))
    try {
      queries.setQueryData(
        [project_id, 'space', space.id],
        await annals.learningSpaces.merge(space.id, changes),
      )
      void queries.invalidateQueries({ queryKey: [project_id, 'spaces'] })
      say('Saved the meta.')
      onClose()
    } catch (error) {
      setFailure((error as Error).message)
    }
  }
  return (
    <form onSubmit={(event) => void save(event)} className="meta-editor">
      <label className="field">
        <span>Meta (a JSON object)</span>
        <textarea
          name="meta"
          className="mono"
          rows={8}
          defaultValue={indented(writeJson(space.meta))}
          spellCheck={false}
        />
      </label>
      <p className="failure-line" role="alert">
        {failure}
      </p>
      <div className="dialog-actions">
        <button type="button" className="button" onClick={onClose}>
          Cancel
        </button>
        <button type="submit" className="button is-primary">
          Save
        </button>
      </div>
    </form>
  )
}

/** JSON with its outermost members on lines of their own, digits untouched. */
function indented(json: string): string {
  const value = parsedText(json)
  if (!isObject(value) || Object.keys(value).length === 0) return json
  const lines = Object.entries(value).map(([key, member]) => `  ${writeJson(key)}: ${writeJson(member)}`)
  return `{\n${lines.join(',\n')}\n}`
}
