import type { Session } from '@annals/client'
import { type FormEvent, useId, useMemo, useState } from 'react'
import { isObject, type Json, shortText } from '../json/exact_json.ts'
import {
  type Condition,
  filterOf,
  pathText,
  readPath,
  readValue,
  typeOf,
  VALUE_TYPES,
  type ValueType,
} from './conditions.ts'

/** Builds one condition on configs: which key, which type, which value. */
export function ConditionForm(props: {
  condition: Condition | undefined
  rows: Session[]
  onDone: (condition: Condition) => void
  onCancel: () => void
}) {
  const { condition, rows, onDone, onCancel } = props
  const [key, setKey] = useState(condition ? pathText(condition.path) : '')
  const [type, setType] = useState<ValueType>(condition ? typeOf(condition.value) : 'text')
  const [text, setText] = useState(condition ? shortText(condition.value) : '')
  const [failure, setFailure] = useState<string>()
  const [keys_id, values_id] = [useId(), useId()]
  const seen = useMemo(() => seenIn(rows), [rows])
  const values = seen.get(key)
  /** A key from the list also sets the type of its values. */
  const chooseKey = (chosen: string) => {
    setKey(chosen)
    const [example] = seen.get(chosen)?.values() ?? []
    if (example !== undefined && text === '') setType(typeOf(example))
  }
  const read = (): Condition => {
    if (key.trim() === '') throw new Error('Say which key of configs.')
    return { path: readPath(key.trim()), value: readValue(type, text) }
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    try {
      onDone(read())
    } catch (error) {
      setFailure((error as Error).message)
    }
  }
  return (
    <form className="condition-form" onSubmit={submit}>
      <label className="field">
        <span>Key</span>
        <input
          value={key}
          list={keys_id}
          onChange={(event) => chooseKey(event.target.value)}
          placeholder="agent, or run.env"
          autoComplete="off"
          spellCheck={false}
          autoFocus
        />
        <datalist id={keys_id}>
          {[...seen.keys()].map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      </label>
      <label className="field">
        <span>Type</span>
        <select value={type} onChange={(event) => setType(event.target.value as ValueType)}>
          {VALUE_TYPES.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <ValueField {...{ type, text, setText, values_id }} values={values ? [...values.values()] : []} />
      <div className="condition-form-end">
        <button type="submit" className="button is-primary is-small">
          {condition ? 'Change' : 'Add'}
        </button>
        <button type="button" className="button is-small is-quiet" onClick={onCancel}>
          Cancel
        </button>
      </div>
      <p className="hint" role={failure ? 'alert' : undefined}>
        {failure ?? (
          <>
            A dot goes one level down. To the API: <code>{previewOf(read)}</code>
          </>
        )}
      </p>
    </form>
  )
}

function ValueField(props: {
  type: ValueType
  text: string
  setText: (text: string) => void
  values_id: string
  values: Json[]
}) {
  const { type, text, setText, values_id, values } = props
  if (type === 'null') return null
  if (type === 'true / false') {
    return (
      <label className="field">
        <span>Value</span>
        <select value={text === 'false' ? 'false' : 'true'} onChange={(event) => setText(event.target.value)}>
          <option>true</option>
          <option>false</option>
        </select>
      </label>
    )
  }
  return (
    <label className="field">
      <span>Value</span>
      <input
        value={text}
        list={values_id}
        onChange={(event) => setText(event.target.value)}
        inputMode={type === 'number' ? 'decimal' : 'text'}
        autoComplete="off"
        spellCheck={false}
        placeholder={type === 'JSON' ? '["a"]' : ''}
      />
      <datalist id={values_id}>
        {values.map((value) => (
          <option key={shortText(value)} value={shortText(value)} />
        ))}
      </datalist>
    </label>
  )
}

function previewOf(read: () => Condition): string {
  try {
    return JSON.stringify(filterOf([read()]))
  } catch {
    return '…'
  }
}

const VALUES_MAX = 50

/** Keys in the rows, with their values. */
function seenIn(rows: Session[]): Map<string, Map<string, Json>> {
  const seen = new Map<string, Map<string, Json>>()
  const walk = (object: Record<string, unknown>, path: string[]) => {
    for (const [key, value] of Object.entries(object) as Array<[string, Json]>) {
      if (isObject(value)) {
        walk(value, [...path, key])
        continue
      }
      const name = pathText([...path, key])
      const values = seen.get(name) ?? new Map<string, Json>()
      seen.set(name, values)
      if (values.size < VALUES_MAX) values.set(shortText(value), value)
    }
  }
  for (const { configs } of rows) walk(configs, [])
  return seen
}
