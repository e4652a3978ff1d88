import { type ReactNode, useId } from 'react'

/** A button that shows a few choices. It uses the browser's popover: Escape and a click elsewhere close it. */
export function Menu(props: { label: string; content: ReactNode; children: ReactNode; className?: string }) {
  const id = useId()
  return (
    <div className={`menu ${props.className ?? ''}`}>
      <button type="button" className="button" popoverTarget={id} aria-label={props.label}>
        {props.content}
        <span className="caret" aria-hidden="true">
          ▾
        </span>
      </button>
      <div id={id} popover="auto" className="menu-list">
        {props.children}
      </div>
    </div>
  )
}

export function MenuItem({ onChoose, children }: { onChoose: () => void; children: ReactNode }) {
  return (
    <button
      type="button"
      className="menu-item"
      onClick={(event) => {
        event.currentTarget.closest<HTMLElement>('[popover]')?.hidePopover()
        onChoose()
      }}
    >
      {children}
    </button>
  )
}
