import type { Format } from './format.js'
import { CLAUDE_CODE } from './formats/claude_code.js'
import { CODEX } from './formats/codex.js'
import { OPENAI_CHAT } from './formats/openai_chat.js'
import { OPENAI_RESPONSES } from './formats/openai_responses.js'
import type { Head } from './reading/head.js'

/** All formats. Those that are easier to mistake for another one stand further down. */
export const FORMATS: readonly Format[] = [CLAUDE_CODE, CODEX, OPENAI_RESPONSES, OPENAI_CHAT]

/** The format of a file: the first that knows one of its samples. */
export function findFormat(head: Head): Format | undefined {
  return FORMATS.find((format) => head.samples.some((sample) => format.knows(sample, head)))
}
