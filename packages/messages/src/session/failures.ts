import { isObject, type JsonObject } from '../blob_reading.js'
import { parseObject } from '../tool_arguments.js'

/** How much of a text is examined: an error is named at the beginning. */
const HEAD_MAX = 300

/**
 * `Error: …`, `ValueError: …`, `java.io.IOException: …`, `Error executing tool f`, `Exception in thread "main"`, or
 * nothing but the word. Not a text about errors, such as `Error rates fell` or `Error handling in Rust`, nor
 * a line of a program such as `this.showError(text)`. The repeats
 * are bounded, so that a hostile text takes no more time than any other.
 */
const FAILURE =
  /^(?!(?:[\w$]{1,40}\.){0,6}[a-z][\w$]{0,80}(?:Error|Exception)\()(?:[Uu]ncaught |[Uu]nhandled |[Ff]atal )?(?:[\w.$]{0,120}(?:Error|Exception)|error|ERROR|exception|EXCEPTION)(?:\s*$|\s*[:([!]|\.?\s*[\r\n]|\.(?:\s|$)|\s+[-–—]\s|\s(?:executing|calling|invoking|running|while|when|during|in|from|code|occurred)\b)/
const TRACEBACK = /^traceback \(most recent call last\)/i

/**
 * Sentences with which Codex, Claude Code, OpenHands and clients of MCP report that a tool did not run or did not
 * finish: `tool call error: …`, `failed in sandbox …`, `exec_command failed: …`, `MCP error -32602: …`. Claude Code has
 * a line `Exit code 1` above the output of a command only if it failed.
 */
const HARNESS_FAILURE =
  /^(?:err: |tool call error: |failed in sandbox |execution error: |unsupported (?:custom tool )?call: |failed to parse function arguments: |(?:apply_patch verification|collab spawn|[a-z]{1,40}(?:_[a-z]{1,40}){1,5}) failed(?:: (?!\d)| for `)|(?:MCP|Mcp) error:? -?\d|(?:exec command|patch) rejected(?:: | by user)|aborted by user\b|user (?:rejected|cancelled) MCP tool call|Script failed\r?\nWall time |Exit code -?[1-9]\d{0,9}\r?(?:\n|$)|<tool_use_error>|\[An error occurred during execution\.\])/

/** How Codex begins the lines that it writes above the output of a command, and how long these are at most. */
const CODEX_HEADER = /^(?:Command|Chunk ID|Wall time|Exit code): /
const CODEX_HEADER_MAX = 4_000
const CODEX_EXIT_CODE = /^(?:Exit code:|Process exited with code) (-?\d{1,10})\r?$/gm
const CODEX_WALL_TIME = /^Wall time: [\d.]{1,20} seconds\r?$/m
/** Its line above the output of any other tool. */
const CODEX_TIMED = /^Wall time: [\d.]{1,20} seconds\r?\n(?:Output:\s*)?/

/** mini-SWE-agent's line above the output of a command. */
const RETURN_CODE = /^<returncode>(-?\d{1,10})<\/returncode>\s*<(?:output|warning)/

/** How much of the end of a text is examined. */
const TAIL_MAX = 1_000
/** The line of OpenHands and SWE-agents below the output of a command, the last one or above where it ran. */
const EXIT_LINE =
  /(?:^|\n)\[(?:Command finished with exit code (-?\d{1,10})|The command completed with exit code (-?\d{1,10})\.|exit code (-?\d{1,10}))\](?:\n\[(?:Current working directory|Python interpreter): [^\n]*\]){0,2}$/
/** The text of Gemini CLI and its kin around it. */
const SHELL_HEADER = /^(?:Output|Command): /
const SHELL_FOOTER =
  /\nExit Code: (-?\d{1,10}|\(none\))(?:\n(?:Signal|Background PIDs|Process Group PGID): [^\n]*){0,3}$/
const SHELL_SIGNAL =
  /\nSignal: (?!\(none\)|0\n|0$)[^\n]+(?:\n(?:Background PIDs|Process Group PGID): [^\n]*){0,2}$/

/** The beginning of a list of MCP's content, as JSON. */
const CONTENT_LIST = /^\[\s*\{\s*(?:"type"\s*:\s*"text"\s*,\s*)?"text"\s*:\s*(?=")/

/** A JSON text without any of these cannot report a failure. */
const TELLING_MEMBER = /"(?:error|is_error|isError|ok|success|status|exit_code|Ok|Err)"\s*:/

/** Whether a tool's result, as text, says that the call failed. */
export function textSaysFailed(text: string): boolean {
  const said = text.trimStart()
  const exit_code = codexExitCode(said) ?? shellExitCode(said)
  if (exit_code !== undefined) return exit_code !== 0
  return outputSaysFailed(said.slice(CODEX_TIMED.exec(said)?.[0].length ?? 0))
}

/** The exit code of a command that Codex ran, from the lines above its output. The command may be among them. */
function codexExitCode(said: string): number | undefined {
  if (!CODEX_HEADER.test(said)) return undefined
  const head = said.slice(0, CODEX_HEADER_MAX)
  const header = head.slice(0, Math.max(0, head.indexOf('\nOutput:')))
  const code = CODEX_WALL_TIME.test(header) ? [...header.matchAll(CODEX_EXIT_CODE)].at(-1) : undefined
  return code && Number(code[1])
}

/** The exit code of a command that another agent ran, where it stands above or below the output. */
function shellExitCode(said: string): number | undefined {
  const tail = said.slice(-TAIL_MAX).trimEnd()
  const code = RETURN_CODE.exec(said.slice(0, HEAD_MAX)) ?? EXIT_LINE.exec(tail)
  if (code) return Number(code.slice(1).find((one) => one !== undefined))
  if (!SHELL_HEADER.test(said)) return undefined
  if (SHELL_SIGNAL.test(tail)) return -1
  const exit_code = Number(SHELL_FOOTER.exec(tail)?.[1])
  return Number.isNaN(exit_code) ? undefined : exit_code
}

function outputSaysFailed(said: string): boolean {
  if (said.startsWith('{')) return TELLING_MEMBER.test(said) && objectSaysFailed(parseObject(said) ?? {})
  const listed = said.slice(CONTENT_LIST.exec(said.slice(0, HEAD_MAX))?.[0].length ?? 0)
  const head = listed.slice(listed.startsWith('"') ? 1 : 0, HEAD_MAX).replace(/"$/, '')
  return FAILURE.test(head) || TRACEBACK.test(head) || HARNESS_FAILURE.test(head)
}

/** Whether a tool's result says that the call failed. */
export function valueSaysFailed(value: unknown): boolean {
  if (typeof value === 'string') return textSaysFailed(value)
  if (!Array.isArray(value)) return isObject(value) && objectSaysFailed(value)
  // Of MCP's content, the first text.
  const text = isObject(value[0]) ? value[0].text : undefined
  return typeof text === 'string' && textSaysFailed(text)
}

/** Whether an object reports a failure in one of its members. If it has the flag, that decides. */
function objectSaysFailed(object: JsonObject): boolean {
  return (
    failureMark(object) ??
    (isSomething(object.error) ||
      object.ok === false ||
      object.success === false ||
      object.status === 'error' ||
      codexObjectSaysFailed(object))
  )
}

/** `{ output, metadata: { exit_code } }` of a command, and `{ Ok: result }` or `{ Err: text }` of a tool of MCP. */
function codexObjectSaysFailed({ output, metadata, Ok: result, Err: error, ...more }: JsonObject): boolean {
  if (typeof output === 'string' && isObject(metadata))
    return typeof metadata.exit_code === 'number' && metadata.exit_code !== 0
  if (Object.keys(more).length > 0) return false
  return typeof error === 'string' || (isObject(result) && failureMark(result) === true)
}

/** Like `objectSaysFailed`, for the data of an event, whose `status` is the call's own. */
export function eventSaysFailed(data: JsonObject): boolean {
  return objectSaysFailed(data) || data.status === 'failed' || data.status === 'failure'
}

/** The flag of MCP and the providers. */
export function failureMark(object: JsonObject): boolean | undefined {
  return [object.is_error, object.isError].find((mark) => typeof mark === 'boolean')
}

/** Whether an `error` is non-empty: null, false, 0 and empty values do not count. */
export function isSomething(error: unknown): boolean {
  if (Array.isArray(error)) return error.length > 0
  if (isObject(error)) return Object.keys(error).length > 0
  return Boolean(error)
}
