import { describe, expect, it } from 'vitest'
import { APPEND_ENTRIES } from '../../../server/src/log/append/append_queries.ts'
import { FUNCTIONS } from '../../../server/src/service/modules.ts'
import { fill } from '../../src/postgres/stored_function.ts'

const PLACE = /\{[a-z_]+\}/g

describe('a stored function', () => {
  it('has a value in every place that its file names in braces', () => {
    const open = FUNCTIONS.flatMap(({ name, definition }) =>
      (definition.match(PLACE) ?? []).map((place) => `${name}: ${place}`),
    )
    expect(open).toEqual([])
  })

  it('names its tables on one PostgreSQL, and on a cluster leaves their places open for their shards', () => {
    const { name, definition, definition_on_cluster } = APPEND_ENTRIES
    expect(definition).toContain('INSERT INTO entries AS e')
    expect(definition_on_cluster).toContain('INSERT INTO {entries} AS e')
    const open = new Set(definition_on_cluster!.match(PLACE))
    expect([...open].sort()).toEqual([
      '{change_marks}',
      '{entries}',
      '{idempotency_keys}',
      '{name}',
      '{session_heads}',
    ])
    expect(definition_on_cluster).toMatch(new RegExp(`^CREATE OR REPLACE FUNCTION ${name}\\(`, 'm'))
  })

  it('sets no column to an element of an array, which ends a Citus worker by a segmentation fault', () => {
    const sets = FUNCTIONS.flatMap(({ name, definition }) =>
      [...definition.matchAll(/\bUPDATE [^;]*?\bSET ([^;]*?)(?=\bFROM\b|\bWHERE\b|;)/g)].map(
        ([, set]) => `${name}: ${set}`,
      ),
    )
    expect(sets.length).toBeGreaterThan(20)
    expect(sets.filter((set) => / = \(*\w+\[/.test(set))).toEqual([])
  })

  it('is refused if a value has no place in its file', () => {
    expect(fill('SELECT {column}', { column: 'a' })).toBe('SELECT a')
    expect(() => fill('SELECT {column}', { row: 'a' })).toThrow('No place in the SQL is named {row}.')
  })
})
