import {
  type Comparison,
  compareSteps,
  detailOf,
  isSame,
  type Row,
  type Step,
  shownOutcome,
  stepsOf,
} from '@annals/messages/session'
import { useMemo, useRef } from 'react'
import { useProject } from '../access/project_context.tsx'
import { navigate, useAddress, withQuery } from '../address/address.ts'
import { Link } from '../address/link.tsx'
import { usePageTitle } from '../parts/page_title.ts'
import { Empty, Failure, Loading } from '../parts/states.tsx'
import { countText } from '../parts/timestamp.tsx'
import { useFacts } from '../sessions/facts_query.ts'
import { ENTRIES_MAX, useWholeLog, type WholeLog } from './compare_query.ts'
import { ComparedRow } from './compared_row.tsx'

/** Two sessions side by side. */
export function ComparePage() {
  usePageTitle('Compare')
  const { query } = useAddress()
  const [a = '', b = ''] = [query.get('a'), query.get('b')].map((id) => id ?? '')
  const [left, right] = [useWholeLog(a), useWholeLog(b)]
  if (a === '' || b === '')
    return (
      <Empty title="Nothing to compare yet" is_page>
        <p>Select two sessions in the list.</p>
        <Link to="/sessions">All sessions</Link>
      </Empty>
    )
  const failed = [left, right].find(({ isError }) => isError)
  if (failed) return <Failure is_page error={failed.error} onRetry={() => void failed.refetch()} />
  if (!left.data || !right.data) return <Loading what="both sessions" />
  return <Compared left={left.data} right={right.data} />
}

function Compared({ left, right }: { left: WholeLog; right: WholeLog }) {
  const { path, query } = useAddress()
  const comparison = useMemo(() => compareSteps(stepsOf(left.items), stepsOf(right.items)), [left, right])
  const { rows, different } = comparison
  const shown = KINDS.find((kind) => kind === query.get('show'))
  const runs = useMemo(
    () =>
      runsOf(
        rows.filter(
          ({ left, right }) => !shown || ((left ?? right)!.kind === 'call') === (shown === 'calls'),
        ),
      ),
    [rows, shown],
  )
  const place = useRef<HTMLDivElement>(null)
  const sessions = [left.session, right.session]
  return (
    <div className="page">
      <div className="page-head">
        <h1>Compare</h1>
        <p className="hint" role="status">
          {different === 0
            ? `All ${countText(rows.length)} steps are the same`
            : `${countText(different)} of ${countText(rows.length)} steps differ`}
          {(left.is_cut || right.is_cut) && `, in the first ${countText(ENTRIES_MAX)} entries`}
        </p>
      </div>
      <div className="compared" ref={place}>
        <div className="compared-row is-head">
          <Head log={left} sessions={sessions} />
          <Head log={right} sessions={sessions} />
        </div>
        <Parting
          comparison={comparison}
          onShow={() => place.current?.querySelector('.is-parting')?.scrollIntoView({ block: 'center' })}
        />
        <label className="by">
          Show{' '}
          <select
            value={shown ?? ''}
            onChange={({ target }) =>
              navigate(withQuery(path, { ...Object.fromEntries(query), show: target.value || undefined }), {
                replace: true,
              })
            }
          >
            <option value="">Everything</option>
            <option value="calls">Tool calls</option>
            <option value="said">Messages and events</option>
          </select>
        </label>
        {runs.map((run) => {
          const [first] = run
          const key = `${first!.left?.seq} ${first!.right?.seq} ${first!.left?.text.length}`
          return isSame(first!) ? (
            <details key={key} className="compared-same">
              <summary>
                {countText(run.length)} {run.length === 1 ? 'step is' : 'steps are'} the same
              </summary>
              {run.map((row, index) => (
                <ComparedRow key={index} row={row} is_same ids={[left.session.id, right.session.id]} />
              ))}
            </details>
          ) : (
            run.map((row, index) => (
              <ComparedRow
                key={`${key} ${index}`}
                row={row}
                is_same={false}
                is_parting={row === rows[comparison.parts_at ?? -1]}
                ids={[left.session.id, right.session.id]}
              />
            ))
          )
        })}
      </div>
    </div>
  )
}

const KINDS = ['calls', 'said'] as const
const CALLS_SHOWN = 20

/** Where two runs part, and which calls only one of them made. */
function Parting({ comparison, onShow }: { comparison: Comparison; onShow: () => void }) {
  const { rows, parts_at, only_left, only_right } = comparison
  const row = parts_at === undefined ? undefined : rows[parts_at]
  if (!row) return null
  return (
    <section className="parting" aria-label="Where they part">
      <p>
        {parts_at === 0
          ? 'They differ from the first step'
          : parts_at === 1
            ? 'The first step is the same'
            : `The first ${countText(parts_at!)} steps are the same`}
        :{' '}
        <button type="button" className="plain" onClick={onShow}>
          {parts_at === 0 ? '' : 'then '}left {briefOf(row.left)}; right {briefOf(row.right)}
        </button>
      </p>
      {only_left.length + only_right.length > 0 && (
        <div className="calls-alone">
          <CallsAlone name="left" calls={only_left} />
          <CallsAlone name="right" calls={only_right} />
        </div>
      )}
    </section>
  )
}

function briefOf(step: Step | undefined): string {
  if (!step) return 'has nothing here'
  return step.kind === 'call' ? `calls ${step.name} (entry ${step.seq})` : `${step.name} (entry ${step.seq})`
}

function CallsAlone({ name, calls }: { name: string; calls: Step[] }) {
  return (
    <div>
      <p>
        {calls.length === 0 ? 'No' : countText(calls.length)} {calls.length === 1 ? 'call' : 'calls'} only on
        the {name}
      </p>
      {calls.length > 0 && (
        <ul>
          {calls.slice(0, CALLS_SHOWN).map((call, index) => (
            <li key={index} className={call.verdict === 'failed' ? 'is-failed' : ''}>
              <span className="seq mono">{countText(call.seq)}</span>{' '}
              <span className="mono call-name">{call.name}</span>{' '}
              <span className="mono faint">{detailOf(call.text)}</span>
              {call.verdict === 'failed' && <span className="call-state"> failed</span>}
            </li>
          ))}
          {calls.length > CALLS_SHOWN && (
            <li className="hint">and {countText(calls.length - CALLS_SHOWN)} more</li>
          )}
        </ul>
      )}
    </div>
  )
}

function Head({ log: { session, items }, sessions }: { log: WholeLog; sessions: WholeLog['session'][] }) {
  const { figures, user } = useFacts(session, sessions)
  const outcome = shownOutcome(session.configs, useProject().outcomes)
  return (
    <h2>
      <Link to={`/sessions/${session.id}`}>{figures?.title ?? session.id}</Link>
      {outcome && <span className={`outcome is-${outcome.verdict}`}>{outcome.word}</span>}
      <span className="hint">
        {user && `${user}, `}
        {items.length === 1 ? '1 entry' : `${countText(items.length)} entries`}
        {figures &&
          figures.calls > 0 &&
          `, ${countText(figures.failures)} of ${countText(figures.calls)} calls failed`}
      </span>
    </h2>
  )
}

/** Rows that follow each other and are all the same, or all not. */
function runsOf(rows: Row[]): Row[][] {
  const runs: Row[][] = []
  for (const row of rows) {
    const run = runs.at(-1)
    if (run && isSame(run[0]!) === isSame(row)) run.push(row)
    else runs.push([row])
  }
  return runs
}
