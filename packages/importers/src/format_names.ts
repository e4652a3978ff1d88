/** The formats, by the names that `annals import --format` takes, for those who need no more than that. */
export const FORMAT_NAMES = [
  'claude-code',
  'codex',
  'openai-chat',
  'openai-responses',
  'anthropic',
  'gemini',
  'chatgpt',
  'claude-ai',
  'atif',
  'inspect',
  'swe-agent',
  'tau-bench',
  'langfuse',
  'langsmith',
  'phoenix',
  'otlp',
] as const
