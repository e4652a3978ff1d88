import { CopyButton } from '../parts/copy_button.tsx'

/** A space that learns from nothing yet: how to give it a session. */
export function HowToBegin({ space_id }: { space_id: string }) {
  const commands = {
    'On the command line': `npx annals spaces learn ${space_id} $SESSION`,
    'By the API': `curl -s ${location.origin}/api/v1/learning_spaces/${space_id}/learn -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -d '{"session_id":"'$SESSION'"}'`,
  }
  return (
    <div className="begin">
      <p>
        This space has not been given a session to learn from yet. Give it one, by its id. Within seconds,
        errors of tools become proposals here, each with the entries that it cites.
      </p>
      {Object.entries(commands).map(([where, command]) => (
        <div key={where}>
          <p className="card-head">
            {where}
            <CopyButton what="the command" text={() => command}>
              Copy
            </CopyButton>
          </p>
          <pre className="command">{command}</pre>
        </div>
      ))}
    </div>
  )
}
