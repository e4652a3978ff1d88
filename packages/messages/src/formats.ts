/** The message formats that are taken and given. `acontext` is the neutral form `{ role, parts }`. */
export const MESSAGE_FORMATS = ['openai', 'anthropic', 'gemini', 'acontext'] as const

export type MessageFormat = (typeof MESSAGE_FORMATS)[number]
