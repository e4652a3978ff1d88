import type { Kits, Module, Opened, OpenModule } from '@annals/kits/module.js'
import { ASK_MACHINE } from '@annals/kits/postgres/citus/machine_by_machine.js'
import type { StoredFunction } from '@annals/kits/postgres/stored_function.js'
import { ACCESS_MODULE } from '../access/module.js'
import { AUDIT_MODULE } from '../audit/module.js'
import { BLOB_REFERENCES_MODULE, BLOBS_MODULE } from '../blobs/module.js'
import { CONSOLE_MODULE } from '../console_api/module.js'
import { EXPORTS_MODULE } from '../exports/module.js'
import { LEARNING_MODULE } from '../learning/module.js'
import { LOG_MODULE } from '../log/module.js'
import { MCP_MODULE } from '../mcp/module.js'
import { OTEL_MODULE } from '../otel/module.js'
import { PEOPLE_MODULE } from '../people/module.js'
import { PROJECTS_MODULE } from '../projects/module.js'
import { PROOF_MODULE } from '../proof/module.js'
import { REDACTION_MODULE } from '../redaction/module.js'
import { RUNS_MODULE } from '../runs/module.js'
import { SEARCH_MODULE } from '../search/module.js'
import { SESSIONS_MODULE } from '../sessions/module.js'
import { TOOLS_MODULE } from '../tools/module.js'
import { USERS_MODULE } from '../users/module.js'
import { WEBHOOKS_MODULE } from '../webhooks/module.js'

/**
 * All modules of the service, each after those that it works with or to whose tables its own refer. A new one is a line
 * here.
 */
export const MODULES: readonly Module[] = [
  PROJECTS_MODULE,
  PEOPLE_MODULE,
  USERS_MODULE,
  ACCESS_MODULE,
  AUDIT_MODULE,
  BLOBS_MODULE,
  PROOF_MODULE,
  LEARNING_MODULE,
  LOG_MODULE,
  SESSIONS_MODULE,
  RUNS_MODULE,
  REDACTION_MODULE,
  SEARCH_MODULE,
  TOOLS_MODULE,
  BLOB_REFERENCES_MODULE,
  WEBHOOKS_MODULE,
  OTEL_MODULE,
  EXPORTS_MODULE,
  MCP_MODULE,
  CONSOLE_MODULE,
]

export function functionsOf(modules: readonly Module[]): StoredFunction[] {
  return [ASK_MACHINE, ...modules.flatMap(({ functions = [] }) => functions)]
}

export const FUNCTIONS: readonly StoredFunction[] = functionsOf(MODULES)

export function openModules(modules: readonly Module[], kits: Kits) {
  const open = new Map<Module, OpenModule>()
  const opened: Opened = <Own extends OpenModule>(module: Module<Own>) => {
    const own = open.get(module)
    if (!own) throw new Error(`the module ${module.name} is opened later, or not at all`)
    return own as Own
  }
  for (const module of modules) if (module.open) open.set(module, module.open(kits, opened))
  return { all: [...open.values()], opened }
}
