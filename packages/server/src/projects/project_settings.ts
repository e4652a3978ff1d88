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

/** For the audit, which has no secret. */
export function withoutKey({ model, ...settings }: ProjectSettings): ProjectSettings {
  return { ...settings, ...(model !== undefined && { model: model && { url: model.url, name: model.name } }) }
}
