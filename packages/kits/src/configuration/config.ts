import { StartError } from '../errors.js'
import { BLOB_BYTES_MAX, DATABASE_BLOB_BYTES_MAX } from '../limits.js'
import { SETTINGS, type Setting, variableOf } from './settings.js'

type Settings = typeof SETTINGS
type ValueOf<S extends Setting> = S['default'] extends number
  ? number
  : S['default'] extends string
    ? string
    : string | undefined

export type Config = { readonly [K in keyof Settings]: ValueOf<Settings[K]> }

export function describeSettings(): Array<{ variable: string; default: string; meaning: string }> {
  return Object.entries(SETTINGS as Record<string, Setting>).map(([name, setting]) => ({
    variable: variableOf(name),
    default:
      setting.default === undefined ? '' : `${setting.default}${setting.unit ? ` ${setting.unit}` : ''}`,
    meaning: setting.meaning,
  }))
}

/**
 * Reads the environment. An empty variable counts as unset.
 * @throws StartError that names the first invalid variable and what it accepts, without the value, which may be
 * secret
 */
export function readConfig(given: Record<string, string | undefined>): Config {
  const blob_bytes_max = given.ANNALS_BLOB_BYTES_MAX || (given.ANNALS_S3_BUCKET && String(BLOB_BYTES_MAX))
  const environment: typeof given = { ...given, ANNALS_BLOB_BYTES_MAX: blob_bytes_max }
  const entries = Object.entries(SETTINGS as Record<string, Setting>).map(([name, setting]) => {
    const text = environment[variableOf(name)]
    return [
      name,
      text === undefined || text === '' ? setting.default : readValue(variableOf(name), setting, text),
    ]
  })
  const config = Object.freeze(Object.fromEntries(entries)) as Config
  if ((config.model_url === undefined) !== (config.model === undefined))
    throw new StartError('ANNALS_MODEL_URL and ANNALS_MODEL must be set together. Set both, or neither.')
  if ((config.embeddings_url === undefined) !== (config.embeddings_model === undefined))
    throw new StartError(
      'ANNALS_EMBEDDINGS_URL and ANNALS_EMBEDDINGS_MODEL must be set together. Set both, or neither.',
    )
  if ((config.s3_access_key_id === undefined) !== (config.s3_secret_access_key === undefined))
    throw new StartError(
      'ANNALS_S3_ACCESS_KEY_ID and ANNALS_S3_SECRET_ACCESS_KEY must be set together. Set both, or neither.',
    )
  if ((config.proof_anchor === undefined) !== (config.proof_key === undefined))
    throw new StartError(
      'ANNALS_PROOF_ANCHOR and ANNALS_PROOF_KEY must be set together. Set both, or neither.',
    )
  const oidc = [config.oidc_client_id, config.oidc_client_secret, config.public_url]
  if (config.oidc_issuer !== undefined && oidc.includes(undefined))
    throw new StartError(
      'ANNALS_OIDC_ISSUER needs ANNALS_OIDC_CLIENT_ID, ANNALS_OIDC_CLIENT_SECRET and ANNALS_PUBLIC_URL, too. Set all of them.',
    )
  if (config.s3_bucket === undefined && config.blob_bytes_max > DATABASE_BLOB_BYTES_MAX)
    throw new StartError(
      `ANNALS_BLOB_BYTES_MAX must be at most ${DATABASE_BLOB_BYTES_MAX} without ANNALS_S3_BUCKET. Correct it and start again.`,
    )
  return config
}

function readValue(variable: string, setting: Setting, text: string): string | number {
  if (typeof setting.default !== 'number') {
    if (setting.pattern && !setting.pattern.test(text)) {
      throw new StartError(`${variable} must be ${setting.takes}. Correct it and start again.`)
    }
    return text
  }
  const value = Number(text)
  const min = setting.min ?? 0
  const max = setting.max ?? Number.MAX_SAFE_INTEGER
  if (!/^\d{1,15}$/.test(text) || value < min || value > max) {
    throw new StartError(
      `${variable} must be an integer from ${min} to ${max}${setting.unit ? ` (${setting.unit})` : ''}. Correct it and start again.`,
    )
  }
  return value
}
