import { CopyButton } from '../parts/copy_button.tsx'

/** A key that was just made. It is shown this once. */
export function NewSecret({ of, token, onClose }: { of: string; token: string; onClose: () => void }) {
  return (
    <div className="new-secret" role="status">
      <p>The API key of {of}. It is shown this once; keep it now.</p>
      <code className="mono">{token}</code>
      <div className="dialog-actions">
        <CopyButton text={() => token} className="button is-primary">
          Copy the key
        </CopyButton>
        <button type="button" className="button" onClick={onClose}>
          I have kept it
        </button>
      </div>
    </div>
  )
}
