import { prepared } from '@annals/kits/postgres/statement.js'
import { storedFunctionIn } from '@annals/kits/postgres/stored_function.js'

/** Vectors that a question is compared with, the newest ones; and those that are compared exactly, after their sketches. */
const VECTORS_MAX = 50_000
const COMPARED = 512

export const ADD_VECTORS = storedFunctionIn('search/vectors/add_vectors.sql')
export const FIND_NEAR_ENTRIES = storedFunctionIn('search/vectors/find_near_entries.sql', {
  vectors_max: VECTORS_MAX,
  compared: COMPARED,
})

/**
 * Projects whose vectors are to be made, made anew, or erased: $1 the model, null where there is none; $2 whether those of
 * another model are this node's to change. Rows: id, is_wanted.
 */
export const FIND_PROJECTS_OF_VECTORS = prepared(
  'find_projects_of_vectors',
  `SELECT p.id, coalesce(p.search, false) AND $1::text IS NOT NULL AS is_wanted FROM projects p
WHERE CASE WHEN p.search THEN p.vectors IS DISTINCT FROM $1 AND ($2 OR p.vectors IS NULL) ELSE p.vectors IS NOT NULL END`,
)

/** Notes whose vectors a project has from now on. $1 project, $2 the model or null. Row: one if that is another one. */
export const SET_MODEL_OF_VECTORS = prepared(
  'set_model_of_vectors',
  'UPDATE projects AS p SET vectors = $2 WHERE p.id = $1 AND p.vectors IS DISTINCT FROM $2 RETURNING p.id',
)
