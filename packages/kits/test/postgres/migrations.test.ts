import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { migrationStatements } from '../../src/postgres/migrations.ts'

const MIGRATIONS = fileURLToPath(new URL('../../../server/migrations/', import.meta.url))

it('ends a statement at a semicolon that stands in no comment, string or text between dollars', () => {
  const first = "-- One; two\nSELECT 'it''s; one', $$a;b$$, $f$ $$;$$ ; $f$ /* ; */"
  expect(migrationStatements(`${first};\nSELECT 2;\n-- The end;\n`)).toEqual([first, 'SELECT 2'])
})

it('leaves nothing of a migration out, and makes one command of each statement', () => {
  for (const name of readdirSync(MIGRATIONS)) {
    const sql = readFileSync(`${MIGRATIONS}${name}`, 'utf8')
    const statements = migrationStatements(sql)
    expect(`${statements.join(';\n\n')};`.replace(/\s+/g, ' ')).toBe(sql.trim().replace(/\s+/g, ' '))
    for (const statement of statements)
      expect(statement.replace(/^(--.*\n|\s)+/, '')).toMatch(
        /^(CREATE|ALTER|DROP|INSERT|UPDATE|DELETE|TRUNCATE|SET LOCAL|DO) /,
      )
  }
})
