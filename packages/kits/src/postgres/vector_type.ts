import type { Config } from '../configuration/config.js'
import { StartError } from '../errors.js'
import type { Queryable } from './database.js'
import { prepared } from './statement.js'

/** What the extension defines, in a schema that is searched. Row: one if it is there. */
export const FIND_VECTOR_TYPE = prepared(
  'find_vector_type',
  "SELECT 1 AS is_there WHERE to_regtype('vector') IS NOT NULL",
)

/** @throws StartError if the operator names a model whose vectors the database cannot compare */
export async function checkVectorType(database: Queryable, { embeddings_url }: Config): Promise<void> {
  if (embeddings_url === undefined || (await database.query(FIND_VECTOR_TYPE, [])).length > 0) return
  throw new StartError(
    'ANNALS_EMBEDDINGS_URL is set, but the database lacks the extension vector. Install pgvector on its server and run CREATE EXTENSION vector in the database as a superuser, or unset ANNALS_EMBEDDINGS_URL.',
  )
}
