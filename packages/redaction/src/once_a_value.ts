import type { Mark } from './rewrite.js'

/** Made once for each value: a text may have the same one a hundred thousand times. */
export function onceAValue<Made>(make: (mark: Mark) => Made): (mark: Mark) => Made {
  const known = new Map<string, Map<string, Made>>()
  let before: Mark | undefined
  let values = new Map<string, Made>()
  return (mark) => {
    const { action, name, session_id, value } = mark
    if (action !== before?.action || name !== before.name || session_id !== before.session_id) {
      const kind = `${session_id} ${action} ${name}`
      values = known.get(kind) ?? new Map()
      known.set(kind, values)
    }
    before = mark
    let made = values.get(value)
    if (made === undefined) {
      made = make(mark)
      values.set(value, made)
    }
    return made
  }
}
