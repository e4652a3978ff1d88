import type { Role } from './parts.js'

/**
 * What an item of the Responses API is that is neither a message, nor a function's call or its output, nor
 * reasoning:
 *
 * - `hosted_call`: a call of a tool that OpenAI runs itself; what came of it is in the same item
 * - `call`, `output`: a call of a built-in tool that the caller runs, and what came of it, tied by `call_id`
 * - `setting`: says how the model is to answer, and is no turn of the conversation
 * - `from_model`, `from_caller`: anything else, by the side that it comes from
 */
export type ItemKind = 'hosted_call' | 'call' | 'output' | 'setting' | 'from_model' | 'from_caller'

const ITEM_KINDS: ReadonlyMap<string, ItemKind> = new Map([
  ['web_search_call', 'hosted_call'],
  ['file_search_call', 'hosted_call'],
  ['code_interpreter_call', 'hosted_call'],
  ['image_generation_call', 'hosted_call'],
  ['mcp_call', 'hosted_call'],
  ['computer_call', 'call'],
  ['computer_call_output', 'output'],
  ['local_shell_call', 'call'],
  ['local_shell_call_output', 'output'],
  ['shell_call', 'call'],
  ['shell_call_output', 'output'],
  ['apply_patch_call', 'call'],
  ['apply_patch_call_output', 'output'],
  ['tool_search_call', 'call'],
  ['tool_search_output', 'output'],
  ['program', 'call'],
  ['program_output', 'output'],
  ['mcp_list_tools', 'from_model'],
  ['mcp_approval_request', 'from_model'],
  ['mcp_approval_response', 'from_caller'],
  ['compaction', 'from_model'],
  ['compaction_trigger', 'setting'],
  ['configuration_update', 'setting'],
  ['additional_tools', 'setting'],
  ['item_reference', 'from_caller'],
])

/** The kind of an item of this type; undefined for an unknown type. */
export function itemKind(type: string): ItemKind | undefined {
  return ITEM_KINDS.get(type)
}

/** Whose an item of this type is. One that is not known is kept like any other, and by its name an output is the caller's. */
export function itemRole(type: string): Role {
  const kind = itemKind(type) ?? (type.endsWith('_output') ? 'output' : 'from_model')
  return kind === 'output' || kind === 'setting' || kind === 'from_caller' ? 'user' : 'assistant'
}
