import { useVirtualizer } from '@tanstack/react-virtual'
import {
  type CSSProperties,
  type MouseEvent,
  type ReactNode,
  useCallback,
  useEffect,
  useRef,
  useState,
} from 'react'
import { navigate } from '../address/address.ts'
import { useKeys } from '../shell/shortcuts.ts'

const ROW_PX = 38
const ROWS_AHEAD = 12
const ASK_MORE_AT = 30

interface TableParts<Row> {
  label: string
  className: string
  columns: string[]
  /** Their widths, as a grid takes them; without, the style sheet has them. */
  widths?: string
  rows: Row[]
  /** Must be the same function at each render. */
  keyOf: (row: Row) => string
  linkOf: (row: Row) => string
  /** The row's cells. */
  renderRow: (row: Row, index: number) => ReactNode
  has_more: boolean
  is_reading: boolean
  failure: unknown
  onMore: () => void
}

/** A table of any length: only visible rows are rendered, and the next page is requested near the end. */
export function VirtualTable<Row>(props: TableParts<Row>) {
  const {
    label,
    className,
    columns,
    widths,
    rows,
    keyOf,
    linkOf,
    renderRow,
    has_more,
    is_reading,
    failure,
    onMore,
  } = props
  const scroller = useRef<HTMLDivElement>(null)
  const [current, setCurrent] = useState(-1)
  // The same function for the same rows: a new one would recompute the positions of all rows.
  const getItemKey = useCallback((index: number) => keyOf(rows[index]!), [rows, keyOf])
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: ROWS_AHEAD,
    getItemKey,
    initialOffset: keptPlace,
  })
  const items = virtualizer.getVirtualItems()
  const last = items.at(-1)?.index ?? 0
  useEffect(() => {
    if (has_more && !is_reading && !failure && last >= rows.length - ASK_MORE_AT) onMore()
  })
  useEffect(() => {
    const element = scroller.current!
    const keep = () => keepPlace(element.scrollTop)
    element.addEventListener('scrollend', keep)
    return () => element.removeEventListener('scrollend', keep)
  }, [])
  const move = (step: number) => {
    const next = Math.min(Math.max(current + step, 0), rows.length - 1)
    setCurrent(next)
    virtualizer.scrollToIndex(next)
    requestAnimationFrame(() =>
      scroller.current?.querySelector<HTMLElement>(`[data-index="${next}"] .row-link`)?.focus(),
    )
  }
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    Enter: () => {
      const focused = document.activeElement
      if (focused instanceof HTMLButtonElement || focused instanceof HTMLAnchorElement) focused.click()
      else if (rows[current]) navigate(linkOf(rows[current]))
    },
  })
  return (
    <div
      className="table-scroller"
      style={{ '--rows': `${virtualizer.getTotalSize()}px` } as CSSProperties}
      ref={scroller}
      tabIndex={0}
      role="region"
      aria-label={`${label}, scrollable`}
    >
      <div
        className={`table ${className}`}
        style={widths === undefined ? {} : ({ '--columns': widths } as CSSProperties)}
        role="table"
        aria-label={label}
        aria-rowcount={has_more ? -1 : rows.length + 1}
      >
        <div role="rowgroup" className="table-head">
          <div role="row" className="table-row">
            {columns.map((column) => (
              <div key={column} role="columnheader" data-column={column}>
                {column}
              </div>
            ))}
          </div>
        </div>
        <div role="rowgroup" className="table-body" style={{ height: virtualizer.getTotalSize() }}>
          {items.map((item) => (
            // biome-ignore lint/a11y/useKeyWithClickEvents: keys have the row's link
            <div
              key={item.key}
              role="row"
              aria-rowindex={item.index + 2}
              data-index={item.index}
              ref={virtualizer.measureElement}
              className={`table-row ${item.index === current ? 'is-current' : ''}`}
              style={{ transform: `translateY(${item.start}px)` }}
              onClick={openRow}
            >
              {renderRow(rows[item.index]!, item.index)}
            </div>
          ))}
        </div>
      </div>
      {is_reading && (
        <p className="table-foot" role="status">
          Loading more…
        </p>
      )}
      {failure !== undefined && (
        <p className="table-foot is-failure" role="alert">
          {(failure as Error).message}{' '}
          <button type="button" className="button is-small" onClick={onMore}>
            Try again
          </button>
        </p>
      )}
    </div>
  )
}

/** The scroll position is kept with the history entry, so Back returns to the opened row. */
function keepPlace(top: number): void {
  history.replaceState({ ...history.state, top }, '')
}

function keptPlace(): number {
  return Number(history.state?.top ?? 0)
}

/** A click beside the row's link, on a time or between chips, opens it too, unless the element has its own action. */
function openRow({ target, currentTarget }: MouseEvent<HTMLElement>) {
  if ((target as Element).closest('a, button, label, input')) return
  // Selecting text is meant for copying.
  if (getSelection()?.isCollapsed === false) return
  currentTarget.querySelector<HTMLElement>('.row-link')?.click()
}
