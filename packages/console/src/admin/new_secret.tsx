import { CopyButton } from '../parts/copy_button.tsx'

/** A key or another secret that was just created. It is shown only once. */
export function NewSecret(props: { what?: string; of: string; token: string; onClose: () => void }) {
  const { what = 'API key', of, token, onClose } = props
  const short = what.split(' ').at(-1)!
  return (
    <div className="new-secret" role="status">
      <p>
        The {what} of {of}. It is shown only once: save it now.
      </p>
      <code className="mono">{token}</code>
      <div className="dialog-actions">
        <CopyButton what={`the ${short}`} text={() => token} className="button is-primary">
          {`Copy the ${short}`}
        </CopyButton>
        <button type="button" className="button" onClick={onClose}>
          I have saved it
        </button>
      </div>
    </div>
  )
}
