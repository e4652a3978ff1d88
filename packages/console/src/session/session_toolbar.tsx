import type { Session } from '@annals/client'
import type { ToolCall } from '@annals/messages/session'
import { type FormEvent, useEffect, useState } from 'react'
import { Fold } from '../parts/fold.tsx'
import { countText } from '../parts/timestamp.tsx'
import { ConversationMenu } from './conversation_menu.tsx'
import { FORMAT_NAMES, FORMATS, type Format } from './converted_messages.ts'
import type { Log } from './log_query.ts'
import type { LogSearch } from './log_search.ts'
import { SHOWN, type Shown } from './shown_entries.ts'

/** Navigates a log: to a seq, a search match, a tool call, or the end. Also chooses the format. */
export function SessionToolbar(props: {
  session: Session
  log: Log
  calls: readonly ToolCall[]
  /** How many calls the whole session has, where it is not loaded. */
  counted: { calls: number } | undefined
  search: LogSearch
  text: string
  format: Format | undefined
  current: number | undefined
  shown: Shown
  is_converting: boolean
  onJump: (seq: number) => void
  onSearch: (text: string) => void
  onStep: (direction: 1 | -1) => void
  onFormat: (format: Format | undefined) => void
  onShow: (shown: Shown) => void
}) {
  const { session, log, calls, counted, search, text, format, current, shown, is_converting } = props
  const { onJump, onSearch, onStep, onFormat, onShow } = props
  return (
    <div className="toolbar" role="toolbar" aria-label="Session navigation">
      <SearchField text={text} onSearch={onSearch} onStep={onStep} />
      <label>
        <span>Show</span>
        <select value={shown ?? ''} onChange={({ target }) => onShow((target.value || undefined) as Shown)}>
          <option value="">Everything</option>
          {Object.entries(SHOWN).map(([value, name]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {text !== '' && (
        <span className="search-state" role="status">
          {search.found.length === 0
            ? search.is_done
              ? 'nothing found'
              : 'searching…'
            : `${placeOf(search.found, current)}${countText(search.found.length)} found`}
          {!search.is_done &&
            search.searched > 0 &&
            `, ${countText(search.searched)} of ${countText(log.last_seq)} searched`}
          <button
            type="button"
            className="button is-small"
            onClick={() => onStep(-1)}
            aria-label="Previous match (N)"
          >
            ↑
          </button>
          <button
            type="button"
            className="button is-small"
            onClick={() => onStep(1)}
            aria-label="Next match (n)"
          >
            ↓
          </button>
        </span>
      )}
      <button
        type="button"
        className={`button live ${log.is_live ? 'is-on' : ''}`}
        onClick={() => onJump(log.last_seq)}
        title="Go to the latest entry and follow (End)"
      >
        <span className="live-dot" aria-hidden="true" />
        {log.is_live ? 'Live' : 'Connecting'}
      </button>
      <Fold label="Tools">
        <JumpField last_seq={log.last_seq} onJump={onJump} />
        {calls.length > 0 && (
          <label className="calls-field">
            <span>Tool call</span>
            <select
              value={calls.findIndex(({ seq }) => seq === current) + 1 || ''}
              onChange={(event) => onJump(calls[Number(event.target.value) - 1]!.seq)}
            >
              <option value="" disabled>
                of {log.read.length < log.last_seq && !counted && '≥ '}
                {countText(counted?.calls ?? calls.length)}
              </option>
              {calls.slice(0, 500).map(({ number, name, verdict }, index) => (
                <option key={index} value={index + 1}>
                  {number} {name}
                  {verdict === 'failed' ? ' (failed)' : ''}
                </option>
              ))}
            </select>
          </label>
        )}
        <label>
          <span>Format</span>
          <select
            value={format ?? ''}
            onChange={(event) => onFormat(FORMATS.find((one) => one === event.target.value))}
            aria-busy={is_converting}
          >
            <option value="">Readable</option>
            {FORMATS.map((one) => (
              <option key={one} value={one}>
                {FORMAT_NAMES[one]} JSON
              </option>
            ))}
          </select>
        </label>
        <ConversationMenu session={session} format={format} />
      </Fold>
    </div>
  )
}

function SearchField({
  text,
  onSearch,
  onStep,
}: {
  text: string
  onSearch: (text: string) => void
  onStep: (direction: 1 | -1) => void
}) {
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onStep(1)
  }
  return (
    <form className="search" role="search" onSubmit={submit}>
      <label>
        <span className="visually-hidden">Search this session</span>
        <input
          data-search
          type="search"
          value={text}
          onChange={(event) => onSearch(event.target.value)}
          placeholder="Search this session"
          spellCheck={false}
          autoComplete="off"
        />
      </label>
    </form>
  )
}

function JumpField({ last_seq, onJump }: { last_seq: number; onJump: (seq: number) => void }) {
  const [seq, setSeq] = useState('')
  useEffect(() => {
    if (Number(seq) > last_seq && last_seq > 0) setSeq(String(last_seq))
  }, [seq, last_seq])
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (/^\d+$/.test(seq)) onJump(Number(seq))
  }
  return (
    <form className="jump" onSubmit={submit}>
      <label>
        <span>Seq</span>
        <input
          className="mono"
          inputMode="numeric"
          value={seq}
          onChange={(event) => setSeq(event.target.value.replace(/\D/g, ''))}
          placeholder={`1–${last_seq}`}
        />
      </label>
    </form>
  )
}

function placeOf(found: number[], current: number | undefined): string {
  const place = current === undefined ? -1 : found.indexOf(current)
  return place < 0 ? '' : `${countText(place + 1)} of `
}
