import { Annals } from '@annals/client'
import { AnnalsProvider, useAppend, useInbox, useSession, useTimeline } from '@annals/react'
import { type FormEvent, StrictMode } from 'react'
import { createRoot } from 'react-dom/client'

/** A message in the format of OpenAI: of other formats, the content is not a text. */
const textOf = ({ blob }: { blob?: unknown }) => String((blob as { content?: unknown }).content)

function Chat({ session_id }: { session_id: string }) {
  const { session } = useSession(session_id)
  const { entries, status, error, has_earlier, loadEarlier } = useTimeline(session_id, { last: 50 })
  const { append, pending, retry, discard } = useAppend(session_id)
  const { requests, resolve } = useInbox(session_id)

  const say = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = event.currentTarget
    const content = String(new FormData(form).get('text'))
    if (content) append({ kind: 'message', blob: { role: 'user', content } })
    form.reset()
  }
  return (
    <main>
      <h1>{String(session?.configs.topic ?? 'Chat')}</h1>
      <p role="status">{error ? `${status}: ${error.message}` : status}</p>
      {has_earlier && (
        <button type="button" onClick={loadEarlier}>
          Earlier
        </button>
      )}
      <ol>
        {entries.map((entry) => (
          <li key={entry.id} value={entry.seq}>
            {entry.kind === 'message' ? `${entry.role}: ${textOf(entry)}` : entry.type}
          </li>
        ))}
      </ol>
      <ul>
        {pending.map(({ id, entry, state, error }) => (
          <li key={id}>
            {textOf(entry as { blob?: unknown })} ({state}) {error?.message}
            {state === 'failed' && (
              <button type="button" onClick={() => retry(id)}>
                Try again
              </button>
            )}
            {state === 'failed' && (
              <button type="button" onClick={() => discard(id)}>
                Forget it
              </button>
            )}
          </li>
        ))}
      </ul>
      {requests.map(({ id, text, call, call_sha256 }) => (
        <p key={id}>
          {text ?? `May the agent call ${call?.name}?`}
          <button type="button" onClick={() => resolve(id, { decision: 'approve', call_sha256 })}>
            Yes
          </button>
          <button type="button" onClick={() => resolve(id, { decision: 'deny', call_sha256 })}>
            No
          </button>
        </p>
      ))}
      <form onSubmit={say}>
        <input name="text" aria-label="Message" autoComplete="off" />
        <button type="submit">Send</button>
      </form>
    </main>
  )
}

/** The server of the page knows who is signed in; it makes a token for that person's session (server.mjs). */
const renew = async () => (await (await fetch('/token', { method: 'POST' })).json()).token as string
const { url, session_id } = await (await fetch('/chat.json')).json()
const annals = new Annals({ url, renew })
createRoot(document.body.appendChild(document.createElement('div'))).render(
  <StrictMode>
    <AnnalsProvider annals={annals}>
      <Chat session_id={session_id} />
    </AnnalsProvider>
  </StrictMode>,
)
