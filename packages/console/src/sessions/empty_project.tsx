import { useState } from 'react'
import { useProject } from '../access/project_context.tsx'
import { importChosen } from '../importing/dropped_files.tsx'
import { CopyButton } from '../parts/copy_button.tsx'
import { Empty } from '../parts/states.tsx'
import { loadDemo } from './load_demo.ts'

/** An empty project: what to do first. */
export function EmptyProject({ onFilled }: { onFilled: () => void }) {
  const project = useProject()
  const [progress, setProgress] = useState<string>()
  const [failure, setFailure] = useState<string>()
  const command = `curl -s ${location.origin}/api/v1/session -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -d '{"user":"alice","configs":{"agent":"demo"}}'`
  const load = async () => {
    setFailure(undefined)
    setProgress('Loading…')
    try {
      await loadDemo(project.annals, (done, all) => setProgress(`${done} of ${all} sessions`))
      onFilled()
    } catch (error) {
      setFailure((error as Error).message)
    } finally {
      setProgress(undefined)
    }
  }
  return (
    <Empty title="No sessions yet">
      <p>Each run of an agent is a session: its messages, tool calls and events, numbered in order.</p>
      {project.may_write && (
        <button
          type="button"
          className="button is-primary"
          onClick={() => void load()}
          disabled={progress !== undefined}
        >
          {progress ?? 'Load the demo'}
        </button>
      )}
      <p className="failure-line" role="alert">
        {failure}
      </p>
      {project.may_write && (
        <label className="field">
          <span>Or drop transcripts of another tool anywhere on this page, or choose them:</span>
          <input type="file" multiple onChange={({ currentTarget }) => importChosen(currentTarget.files)} />
        </label>
      )}
      <p>Or create one yourself:</p>
      <pre className="command">{command}</pre>
      <CopyButton what="the command" text={() => command}>
        Copy the command
      </CopyButton>
    </Empty>
  )
}
