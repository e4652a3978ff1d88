import type { Action } from './rules.js'

/** What stands in place of a value that was found, once it is known how: one, however often the value is found. */
export interface Mark {
  kind: KindOfMarks
  /** Empty: of all that are not told apart. */
  value: string
  /** Its place among all, so that what is made of it is made once. */
  id: number
  /** Its place among those of its kind that want a number; undefined: it wants none. */
  place: number | undefined
}

export interface KindOfMarks {
  action: Exclude<Action, 'refuse'>
  /** Of what was found: EMAIL. */
  name: string
  /** The session that an object around it names; undefined: none does. */
  session_id: string | undefined
  /** Those that want numbers, in the order of the text. */
  numbered: Mark[]
}

interface Known extends KindOfMarks {
  values: Map<string, Mark>
  /** Of all that are not told apart. */
  bare: Mark
}

/** Of a value, a number below this. */
const TRAITS = 0x10000

function traitOf(value: string): number {
  let trait = value.length
  for (let at = 0; at < value.length; at++) trait = Math.imul(trait, 31) + value.charCodeAt(at)
  return (trait ^ (trait >>> 16)) & (TRAITS - 1)
}

/** The marks of a text. A text may have the same value a hundred thousand times, or as many that differ. */
export class Marks {
  readonly kinds: Known[] = []
  /** By their ids. */
  readonly all: Mark[] = []
  private readonly known = new Map<string, Known>()
  private last: Known | undefined
  private numbered = 0
  /** By trait, whether a value has it. Made when no other value gets a number. */
  private traits: Uint8Array | undefined

  /** @param numbered_max values that are told apart by numbers */
  constructor(private readonly numbered_max = Number.POSITIVE_INFINITY) {}

  of(action: Mark['kind']['action'], name: string, session_id: string | undefined, value: string): Mark {
    const kind = this.kindOf(action, name, session_id)
    if (action === 'drop' || value === '') return kind.bare
    const isNumbered = action === 'mask'
    const isFull = isNumbered && this.numbered >= this.numbered_max
    if (isFull && !this.mayBeKnown(value)) return kind.bare
    const known = kind.values.get(value)
    if (known) return known
    if (isFull) return kind.bare
    const mark = this.make(kind, value, isNumbered ? kind.numbered.length : undefined)
    kind.values.set(value, mark)
    if (isNumbered) {
      kind.numbered.push(mark)
      this.numbered += 1
    }
    return mark
  }

  /** Tells most values apart from those that have numbers, for a part of what looking them up costs. */
  private mayBeKnown(value: string): boolean {
    if (!this.traits) {
      this.traits = new Uint8Array(TRAITS)
      for (const mark of this.all) this.traits[traitOf(mark.value)] = 1
    }
    return this.traits[traitOf(value)] === 1
  }

  private kindOf(action: Known['action'], name: string, session_id: string | undefined): Known {
    const { last } = this
    if (last?.name === name && last.action === action && last.session_id === session_id) return last
    const key = `${session_id} ${action} ${name}`
    let kind = this.known.get(key)
    if (!kind) {
      kind = { action, name, session_id, numbered: [], values: new Map(), bare: undefined as never }
      kind.bare = this.make(kind, '', undefined)
      this.known.set(key, kind)
      this.kinds.push(kind)
    }
    this.last = kind
    return kind
  }

  private make(kind: KindOfMarks, value: string, place: number | undefined): Mark {
    const mark = { kind, value, id: this.all.length, place }
    this.all.push(mark)
    return mark
  }
}
