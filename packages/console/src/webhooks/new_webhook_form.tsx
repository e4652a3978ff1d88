import { type FormEvent, useState } from 'react'

/** A form that creates a webhook. */
export function NewWebhookForm(props: {
  onSubmit: (webhook: { url: string; events: string[] }) => Promise<void>
}) {
  const [failure, setFailure] = useState<string>()
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = event.currentTarget
    const data = new FormData(form)
    const url = String(data.get('url')).trim()
    const kinds = String(data.get('events')).split(',')
    const events = kinds.map((kind) => kind.trim()).filter((kind) => kind !== '')
    if (url === '') return setFailure('Enter a URL first.')
    if (events.length === 0) return setFailure('Say what to send: message, event, or both.')
    try {
      await props.onSubmit({ url, events })
      setFailure(undefined)
      form.reset()
    } catch (error) {
      setFailure((error as Error).message)
    }
  }
  return (
    <form
      className="admin-project webhook-form"
      aria-label="New webhook"
      onSubmit={(event) => void submit(event)}
    >
      <h2>New webhook</h2>
      <label className="field">
        <span>URL</span>
        <input
          name="url"
          inputMode="url"
          placeholder="https://…"
          autoComplete="off"
          spellCheck={false}
          data-search
        />
      </label>
      <label className="field">
        <span>What to send, separated by commas</span>
        <input name="events" defaultValue="message, event" autoComplete="off" spellCheck={false} />
      </label>
      <p className="hint">
        <code>message</code>, <code>event</code>, events of one type such as <code>event.tool_call</code>,{' '}
        <code>request.opened</code>, <code>input.added</code>
      </p>
      <div className="dialog-actions">
        <span className="failure-line" role="alert">
          {failure}
        </span>
        <button type="submit" className="button is-primary">
          Create webhook
        </button>
      </div>
    </form>
  )
}
