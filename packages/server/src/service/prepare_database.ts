import type { Config } from '@annals/kits/configuration/config.js'
import { signsInByCode } from '@annals/kits/configuration/exposure.js'
import type { Database } from '@annals/kits/postgres/database.js'
import { checkVectorType } from '@annals/kits/postgres/vector_type.js'
import { createSignInCode } from '../console_api/sign_in.js'
import { ensureDefaultProject } from '../projects/projects.js'

export interface PreparedDatabase {
  database: string
  api_key: string | undefined
  sign_in_code: string | undefined
  release(): Promise<void>
}

/** Creates what the first start creates, and a code for the console. @throws StartError if the database lacks what is set */
export async function createFirst(database: Database, config: Config) {
  await checkVectorType(database, config)
  return {
    api_key: await ensureDefaultProject(database, config.api_key),
    sign_in_code: signsInByCode(config) ? await createSignInCode(database, 'default') : undefined,
  }
}
