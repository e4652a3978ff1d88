import { BLOB_REFERENCES_MODULE, BLOBS_MODULE } from '../blobs/module.js'
import { LEARNING_MODULE } from '../learning/module.js'
import type { Module } from '../module.js'
import type { StoredFunction } from '../postgres/stored_function.js'
import { PROJECTS_MODULE } from '../projects/module.js'
import { SEARCH_MODULE } from '../search/module.js'
import { SESSIONS_MODULE } from '../sessions/module.js'
import { USERS_MODULE } from '../users/module.js'
import { WEBHOOKS_MODULE } from '../webhooks/module.js'

/** All modules of the service, each behind those whose tables its own refer to. A new one is a line here. */
export const MODULES: readonly Module[] = [
  PROJECTS_MODULE,
  USERS_MODULE,
  BLOBS_MODULE,
  LEARNING_MODULE,
  SESSIONS_MODULE,
  SEARCH_MODULE,
  BLOB_REFERENCES_MODULE,
  WEBHOOKS_MODULE,
]

export function functionsOf(modules: readonly Module[]): StoredFunction[] {
  return modules.flatMap(({ functions = [] }) => functions)
}

export const FUNCTIONS: readonly StoredFunction[] = functionsOf(MODULES)
