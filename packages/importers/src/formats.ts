import type { Format } from './format.js'
import { AIDER } from './formats/aider.js'
import { ANNALS } from './formats/annals.js'
import { ANTHROPIC } from './formats/anthropic.js'
import { ANTIGRAVITY } from './formats/antigravity.js'
import { ATIF } from './formats/atif.js'
import { CHAT_MARKDOWN } from './formats/chat_markdown.js'
import { CHATGPT } from './formats/chatgpt.js'
import { CLAUDE_AI } from './formats/claude_ai.js'
import { CLAUDE_CODE } from './formats/claude_code.js'
import { CLINE } from './formats/cline.js'
import { CODEX } from './formats/codex.js'
import { GEMINI } from './formats/gemini.js'
import { INSPECT } from './formats/inspect.js'
import { KIMI_CODE } from './formats/kimi_code.js'
import { LANGFUSE } from './formats/langfuse.js'
import { LANGSMITH } from './formats/langsmith.js'
import { BEDROCK, BRAINTRUST, HELICONE, VERTEX, WEAVE } from './formats/logged_calls.js'
import { OPENAI_CHAT } from './formats/openai_chat.js'
import { OPENAI_RESPONSES } from './formats/openai_responses.js'
import { AGENT_SESSIONS, CONVERSATIONS } from './formats/other_conversations.js'
import { OTLP } from './formats/otlp.js'
import { PHOENIX } from './formats/phoenix.js'
import { SWE_AGENT } from './formats/swe_agent.js'
import { TAU_BENCH } from './formats/tau_bench.js'
import { JAEGER, ZIPKIN } from './formats/tracers.js'
import { VSCODE_CHAT } from './formats/vscode_chat.js'
import type { Head } from './reading/head.js'

/** All formats. Those that are easier to mistake for another one stand further down. */
export const FORMATS: readonly Format[] = [
  ANNALS,
  ATIF,
  CLAUDE_CODE,
  CODEX,
  KIMI_CODE,
  ANTIGRAVITY,
  CLINE,
  VSCODE_CHAT,
  AIDER,
  CHAT_MARKDOWN,
  AGENT_SESSIONS,
  CHATGPT,
  CLAUDE_AI,
  INSPECT,
  SWE_AGENT,
  TAU_BENCH,
  LANGFUSE,
  LANGSMITH,
  PHOENIX,
  OTLP,
  BEDROCK,
  VERTEX,
  BRAINTRUST,
  HELICONE,
  WEAVE,
  JAEGER,
  ZIPKIN,
  GEMINI,
  ANTHROPIC,
  OPENAI_RESPONSES,
  OPENAI_CHAT,
  CONVERSATIONS,
]

/** The format of a file: the first that knows one of its samples. */
export function findFormat(head: Head): Format | undefined {
  return FORMATS.find((format) =>
    (format.shape === 'text' ? [{}] : head.samples).some((sample) => format.knows(sample, head)),
  )
}
