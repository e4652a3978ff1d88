/** What an operator sets for a project. Null means the default: see the contract. */
export interface ProjectSettings {
  retention_days?: number | null
  rate_limit_per_second?: number | null
  max_sessions?: number | null
  max_bytes?: number | null
  max_blob_bytes?: number | null
  max_tails?: number | null
  max_model_tokens_per_day?: number | null
  search?: boolean | null
  model?: { url: string; name: string; key?: string } | null
}

/** Of a model: a user in a URL would be a password in sight. */
export const MODEL_PATTERNS = {
  url: /^(?=.{1,2048}$)https?:\/\/[^@]+$/,
  name: /^[^\0]{1,200}$/,
  key: /^[\x21-\x7e]{1,1000}$/,
} as const

/** For the audit, which has no secret. */
export function withoutKey({ model, ...settings }: ProjectSettings): ProjectSettings {
  return { ...settings, ...(model !== undefined && { model: model && { url: model.url, name: model.name } }) }
}
