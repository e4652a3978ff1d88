import { CopyButton } from '../parts/copy_button.tsx'

/** A key that was just created. It is shown only once. */
export function NewSecret({ of, token, onClose }: { of: string; token: string; onClose: () => void }) {
  return (
    <div className="new-secret" role="status">
      <p>The API key of {of}. It is shown only once: save it now.</p>
      <code className="mono">{token}</code>
      <div className="dialog-actions">
        <CopyButton what="the key" text={() => token} className="button is-primary">
          Copy the key
        </CopyButton>
        <button type="button" className="button" onClick={onClose}>
          I have saved it
        </button>
      </div>
    </div>
  )
}
