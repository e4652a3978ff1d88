import { Component, type ReactNode } from 'react'
import { Empty } from './states.tsx'

interface Props {
  children: ReactNode
  /** Replaces a small part that failed; without it, an error page is shown. */
  instead?: (fault: Error) => ReactNode
}

/** Confines an error of the console to one view, or to one entry. */
export class FaultBoundary extends Component<Props, { fault: Error | undefined }> {
  override state: { fault: Error | undefined } = { fault: undefined }

  static getDerivedStateFromError(fault: Error) {
    return { fault }
  }

  override render(): ReactNode {
    const { fault } = this.state
    if (!fault) return this.props.children
    if (this.props.instead) return this.props.instead(fault)
    return (
      <Empty title="An error in the console" is_page>
        <p>
          <code>{fault.message}</code>
        </p>
        <p>Stored data is not affected.</p>
        <button type="button" className="button" onClick={() => location.reload()}>
          Reload the page
        </button>
      </Empty>
    )
  }
}
