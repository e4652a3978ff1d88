/**
 * The message formats that are taken and given. `openai` is Chat Completions, `responses` an item of OpenAI's
 * Responses API, `acontext` the neutral form `{ role, parts }`.
 */
export const MESSAGE_FORMATS = ['openai', 'anthropic', 'gemini', 'acontext', 'responses'] as const

export type MessageFormat = (typeof MESSAGE_FORMATS)[number]
