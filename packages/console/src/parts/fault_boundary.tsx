import { Component, type ReactNode } from 'react'
import { Empty } from './states.tsx'

/** A fault of the console's own in one view does not take the page with it. */
export class FaultBoundary extends Component<{ children: ReactNode }, { fault: Error | undefined }> {
  override state: { fault: Error | undefined } = { fault: undefined }

  static getDerivedStateFromError(fault: Error) {
    return { fault }
  }

  override render(): ReactNode {
    const { fault } = this.state
    if (!fault) return this.props.children
    return (
      <Empty title="The console made a mistake here" is_page>
        <p>
          <code>{fault.message}</code>
        </p>
        <p>What is stored is not touched by it.</p>
        <button type="button" className="button" onClick={() => location.reload()}>
          Load the page again
        </button>
      </Empty>
    )
  }
}
