import type { Parameter, Queryable, Row } from '../../../../kits/src/postgres/database.ts'
import type { Statement } from '../../../../kits/src/postgres/statement.ts'

/** Stands in for the table of keys. `answer` may be changed, made to fail, or held back. */
export class Keys implements Queryable {
  /** The hashes that were asked for. */
  readonly asked: string[] = []
  statements = 0
  rows: Row[] = [keyRow()]
  /** The rows by hash, where not every token has the same. */
  only: Map<string, Row> | undefined
  failure: Error | undefined
  held: Array<() => void> | undefined

  async query(_statement: Statement, parameters: readonly Parameter[]): Promise<Row[]> {
    const hashes = (parameters[0] as string[]).map((hash) => hash.replace('\\x', ''))
    this.statements += 1
    this.asked.push(...hashes)
    const { rows, failure } = this
    if (this.held) await new Promise<void>((resolve) => this.held!.push(resolve))
    if (failure) throw failure
    if (this.only) return [...this.only].map(([token_hash, row]) => ({ ...row, token_hash }))
    return hashes.flatMap((token_hash) => rows.map((row) => ({ ...row, token_hash })))
  }
}

export function keyRow(parts: Partial<Row> = {}): Row {
  return { id: 'key', project_id: 'project', scopes: 'read write', expires_at_ms: null, ...parts }
}
