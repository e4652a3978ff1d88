import { isInstructionRole } from './acontext_in.js'
import type { NeutralMessage, Part, Role } from './parts.js'

/** A message in the neutral form, as the renderer writes it. */
export interface AcontextMessage {
  role: Role
  parts: Part[]
  meta?: { provider_role?: 'system' | 'developer'; name?: string }
}

/** Writes a message in the neutral form, which leaves out only what no part has a place for. */
export function writeAcontext({ role, provider_role, name, parts }: NeutralMessage): AcontextMessage[] {
  const meta: NonNullable<AcontextMessage['meta']> = {}
  if (isInstructionRole(provider_role)) meta.provider_role = provider_role
  if (name !== null) meta.name = name
  return [Object.keys(meta).length === 0 ? { role, parts } : { role, parts, meta }]
}
