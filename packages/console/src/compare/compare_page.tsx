import { shownOutcome } from '@annals/messages/session'
import { useMemo } from 'react'
import { useAddress } from '../address/address.ts'
import { Link } from '../address/link.tsx'
import { usePageTitle } from '../parts/page_title.ts'
import { Empty, Failure, Loading } from '../parts/states.tsx'
import { countText } from '../parts/timestamp.tsx'
import { useFacts } from '../sessions/facts_query.ts'
import { ENTRIES_MAX, useWholeLog, type WholeLog } from './compare_query.ts'
import { ComparedRow } from './compared_row.tsx'
import { align, isSame, type Row, stepsOf } from './steps.ts'

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
  const rows = useMemo(() => align(stepsOf(left.items), stepsOf(right.items)), [left, right])
  const runs = useMemo(() => runsOf(rows), [rows])
  const different = rows.filter((row) => !isSame(row)).length
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
      <div className="compared">
        <div className="compared-row is-head">
          <Head log={left} sessions={sessions} />
          <Head log={right} sessions={sessions} />
        </div>
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
                ids={[left.session.id, right.session.id]}
              />
            ))
          )
        })}
      </div>
    </div>
  )
}

function Head({ log: { session, items }, sessions }: { log: WholeLog; sessions: WholeLog['session'][] }) {
  const { figures, user } = useFacts(session, sessions)
  const outcome = shownOutcome(session.configs)
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
