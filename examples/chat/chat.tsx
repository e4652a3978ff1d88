import { Annals } from '@annals/client'
import { AnnalsProvider, useAppend, useInbox, useSession, useTimeline } from '@annals/react'
import type { FormEvent } from 'react'
import { createRoot } from 'react-dom/client'

/** A message in the format of OpenAI: of other formats, the content is not a text. */
const textOf = (entry: object) => String((entry as { blob?: { content?: unknown } }).blob?.content)
const Button = (props: { onClick: () => void; children: string }) => <button type="button" {...props} />

function Chat({ session_id }: { session_id: string }) {
  const { session } = useSession(session_id)
  const { entries, status, error, has_earlier, loadEarlier } = useTimeline(session_id, { last: 50 })
  const { append, pending, retry, discard } = useAppend(session_id)
  const { requests, resolve } = useInbox(session_id)
  const say = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const content = String(new FormData(event.currentTarget).get('text'))
    append({ kind: 'message', blob: { role: 'user', content } })
    event.currentTarget.reset()
  }
  return (
    <main>
      <h1>{String(session?.configs.topic ?? 'Chat')}</h1>
      <p role="status">{error ? `${status}: ${error.message}` : status}</p>
      {has_earlier && <Button onClick={loadEarlier}>Earlier</Button>}
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
            {textOf(entry)} ({state}) {error?.message}
            {state === 'failed' && <Button onClick={() => retry(id)}>Try again</Button>}
            {state === 'failed' && <Button onClick={() => discard(id)}>Forget it</Button>}
          </li>
        ))}
      </ul>
      {requests.map(({ id, text, call, call_sha256 }) => (
        <p key={id}>
          {text ?? `May the agent call ${call?.name}?`}
          <Button onClick={() => resolve(id, { decision: 'approve', call_sha256 })}>Yes</Button>
          <Button onClick={() => resolve(id, { decision: 'deny', call_sha256 })}>No</Button>
        </p>
      ))}
      <form onSubmit={say}>
        <input name="text" aria-label="Message" autoComplete="off" required />
        <button type="submit">Send</button>
      </form>
    </main>
  )
}

/** The server of the page knows who is signed in; it makes a token for that person's session (server.mjs). */
const renew = async () => (await (await fetch('/token', { method: 'POST' })).json()).token as string
const { url, session_id } = await (await fetch('/chat.json')).json()
const chat = <Chat session_id={session_id} />
createRoot(document.body).render(<AnnalsProvider annals={new Annals({ url, renew })}>{chat}</AnnalsProvider>)
