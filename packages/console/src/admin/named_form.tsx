import { type FormEvent, useState } from 'react'

/** A form with one field that creates something by name. */
export function NamedForm(props: {
  label: string
  placeholder: string
  action: string
  onSubmit: (name: string) => Promise<void>
}) {
  const { label, placeholder, action, onSubmit } = props
  const [name, setName] = useState('')
  const [failure, setFailure] = useState<string>()
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    if (name.trim() === '') return setFailure('Give it a name.')
    try {
      await onSubmit(name.trim())
      setName('')
      setFailure(undefined)
    } catch (error) {
      setFailure((error as Error).message)
    }
  }
  return (
    <form className="named-form" onSubmit={(event) => void submit(event)}>
      <label>
        <span className="visually-hidden">{label}</span>
        <input
          value={name}
          onChange={(event) => setName(event.target.value)}
          placeholder={placeholder}
          autoComplete="off"
        />
      </label>
      <button type="submit" className="button">
        {action}
      </button>
      {failure && (
        <span className="failure-line" role="alert">
          {failure}
        </span>
      )}
    </form>
  )
}
