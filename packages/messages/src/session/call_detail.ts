const BEGINNING = 2_000
const DETAIL_MAX = 80
const PATH = /^[\w.~@+-]*[\\/][\w.~@+\\/-]+$/
const PATH_MAX = 28
const TELLING =
  /"(?:command|cmd|script|code|file_path|filepath|filename|path|notebook_path|url|pattern|query|q|prompt|description)"\s*:\s*(?:\[\s*)?"((?:[^"\\]|\\.){1,300})/i
/** A command as a list of words, as Codex has it: what a shell is given, or all words. */
const WORDS =
  /"(?:command|cmd)"\s*:\s*\[\s*(?:"(?:[^"]{0,100}[\\/])?(?:(?:ba|da|fi|k|pw|z)?sh|powershell|cmd)(?:\.exe)?"\s*,\s*"[-/]\w{1,10}"\s*,\s*)?((?:"(?:[^"\\]|\\.){0,300}"\s*,?\s*){1,12})/i
/** The first file of a patch in Codex's form. */
const PATCHED = /\*\*\* Begin Patch\\n\*\*\* (?:Update|Add|Delete) File: ([^"\\]{1,200})/
const FIRST_TEXT = /"\s*:\s*"((?:[^"\\]|\\.){1,300})/

/** A call's subject in a few words: its command, its path, or else its first text. */
export function detailOf(given: string): string | undefined {
  // Arguments may be a whole file; what tells something comes first, or is left out.
  const beginning = given.slice(0, BEGINNING)
  const words = WORDS.exec(beginning)?.[1]
  const text =
    PATCHED.exec(beginning)?.[1] ??
    words?.replaceAll(/(?<!\\)"\s*,?\s*/g, ' ') ??
    (TELLING.exec(beginning) ?? FIRST_TEXT.exec(beginning))?.[1]
  if (text === undefined) return undefined
  const line = textIn(text).trim().replaceAll(/\s+/g, ' ')
  // Of a path, the end tells more.
  if (PATH.test(line) && line.length > PATH_MAX) return `…/${line.split(/[\\/]/).slice(-2).join('/')}`
  if (line.length <= DETAIL_MAX) return line || undefined
  return `${line.slice(0, DETAIL_MAX - 1)}…`
}

function textIn(json: string): string {
  try {
    return JSON.parse(`"${json}"`) as string
  } catch {
    return json
  }
}
