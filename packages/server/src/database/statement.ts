/**
 * One SQL statement of the product. `name` shows in logs and metrics. `prepared` statements are parsed once
 * a connection and soon get a generic plan: right for point look-ups and inserts. A statement whose best plan
 * depends on its parameters (a filtered list) stays unprepared, which makes PostgreSQL plan it for the values
 * at hand: a generic plan for a filtered list was seen to be 90 times slower.
 */
export interface Statement {
  readonly name: string
  readonly text: string
  readonly prepared: boolean
}

/** A statement with a plan that fits every parameter. */
export function prepared(name: string, text: string): Statement {
  return { name, text, prepared: true }
}

/** A statement that is planned anew for the parameters of each call. */
export function planned(name: string, text: string): Statement {
  return { name, text, prepared: false }
}
