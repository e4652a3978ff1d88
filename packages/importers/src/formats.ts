import type { Format } from './format.js'
import { ANTHROPIC } from './formats/anthropic.js'
import { ATIF } from './formats/atif.js'
import { CHATGPT } from './formats/chatgpt.js'
import { CLAUDE_AI } from './formats/claude_ai.js'
import { CLAUDE_CODE } from './formats/claude_code.js'
import { CODEX } from './formats/codex.js'
import { GEMINI } from './formats/gemini.js'
import { INSPECT } from './formats/inspect.js'
import { LANGFUSE } from './formats/langfuse.js'
import { LANGSMITH } from './formats/langsmith.js'
import { OPENAI_CHAT } from './formats/openai_chat.js'
import { OPENAI_RESPONSES } from './formats/openai_responses.js'
import { CONVERSATIONS } from './formats/other_conversations.js'
import { OTLP } from './formats/otlp.js'
import { PHOENIX } from './formats/phoenix.js'
import { SWE_AGENT } from './formats/swe_agent.js'
import { TAU_BENCH } from './formats/tau_bench.js'
import type { Head } from './reading/head.js'

/** All formats. Those that are easier to mistake for another one stand further down. */
export const FORMATS: readonly Format[] = [
  ATIF,
  CLAUDE_CODE,
  CODEX,
  CHATGPT,
  CLAUDE_AI,
  INSPECT,
  SWE_AGENT,
  TAU_BENCH,
  LANGFUSE,
  LANGSMITH,
  PHOENIX,
  OTLP,
  GEMINI,
  ANTHROPIC,
  OPENAI_RESPONSES,
  OPENAI_CHAT,
  CONVERSATIONS,
]

/** The format of a file: the first that knows one of its samples. */
export function findFormat(head: Head): Format | undefined {
  return FORMATS.find((format) => head.samples.some((sample) => format.knows(sample, head)))
}
