import { FAILSAFE_SCHEMA, load, YAMLException } from 'js-yaml'

/** What the front matter of a SKILL.md says that everybody has to know. */
export interface SkillHead {
  name: string
  description: string
}

/** A reason, as the end of a sentence that begins with the file. */
export interface Wrong {
  wrong: string
}

export const SKILL_NAME = /^[a-z0-9]+(-[a-z0-9]+)*$/
export const SKILL_NAME_LENGTH_MAX = 64
const SKILL_DESCRIPTION_LENGTH_MAX = 1_024
const COMPATIBILITY_LENGTH_MAX = 500
/** Characters of front matter: reading YAML may take a millisecond for each hundred. */
const HEAD_LENGTH_MAX = 8_192

const PATH_LENGTH_MAX = 512
/** Control characters, characters that are not seen or turn the writing around, and what means something elsewhere. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\\:*?"<>|]/u
/** Names that stand for devices on Windows, whatever their extension. */
const DEVICE = /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])(?: *\.|$)/i

/** Reads the front matter of a SKILL.md after the Agent Skills format; fields that it does not name are left alone. */
export function readSkillHead(text: string): SkillHead | Wrong {
  const lines = text
    .slice(0, HEAD_LENGTH_MAX)
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
  const end = lines.indexOf('---', 1)
  if (lines[0] !== '---' || end === -1)
    return {
      wrong: `must begin with front matter between two lines "---", of at most ${HEAD_LENGTH_MAX} characters`,
    }
  const yaml = readYaml(lines.slice(1, end).join('\n'))
  if ('wrong' in yaml) return yaml
  const { name, description, license, compatibility, metadata } = yaml.fields
  if (typeof name !== 'string' || name.length > SKILL_NAME_LENGTH_MAX || !SKILL_NAME.test(name))
    return { wrong: 'needs a name of 1 to 64 lower-case letters, digits and single hyphens between them' }
  if (!isText(description, SKILL_DESCRIPTION_LENGTH_MAX))
    return { wrong: `needs a description of 1 to ${SKILL_DESCRIPTION_LENGTH_MAX} characters` }
  if (license !== undefined && typeof license !== 'string') return { wrong: 'has a license that is no text' }
  if (compatibility !== undefined && !isText(compatibility, COMPATIBILITY_LENGTH_MAX))
    return { wrong: `has a compatibility that is no text of 1 to ${COMPATIBILITY_LENGTH_MAX} characters` }
  if (metadata !== undefined && !isTexts(metadata)) return { wrong: 'has a metadata that is no map of texts' }
  return { name, description: description.trim() }
}

/** The top level of a YAML document; all scalars are texts. */
function readYaml(text: string): { fields: Record<string, unknown> } | Wrong {
  try {
    const fields = load(text, { schema: FAILSAFE_SCHEMA })
    return isMap(fields) ? { fields } : { wrong: 'has front matter that is no map of fields' }
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error
    return { wrong: `has front matter that is no YAML: ${error.reason}` }
  }
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isText(value: unknown, length_max: number): value is string {
  return (
    typeof value === 'string' &&
    value.trim() !== '' &&
    value.length <= length_max &&
    value.isWellFormed() &&
    !value.includes('\0')
  )
}

function isTexts(value: unknown): boolean {
  return isMap(value) && Object.values(value).every((text) => typeof text === 'string')
}

/** Why no file of a skill may have this path: it would lie outside on some system, or not be a file's. */
function wrongSkillPath(path: string): string | undefined {
  if (path.length > PATH_LENGTH_MAX) return `has more than ${PATH_LENGTH_MAX} characters`
  if (UNSAFE.test(path))
    return 'has a control character, an invisible one, a backslash, or one of : * ? " < > |'
  const parts = path.split('/')
  if (parts.some((part) => part === '' || part === '.' || part === '..'))
    return 'is not a relative path within the skill'
  if (parts.some((part) => /^ |[ .]$/.test(part)))
    return 'has a part that begins or ends with a space, or ends with a dot'
  if (parts.some((part) => DEVICE.test(part))) return 'has the name of a device on Windows'
  return undefined
}

export const SKILL_MD = 'SKILL.md'

export function isSkillMd(path: string): boolean {
  return path.toLowerCase() === SKILL_MD.toLowerCase()
}

/** What stands before the paths of all files: a folder, unless SKILL.md is at the top level. */
export function skillRoot(names: readonly string[]): string {
  if (names.some(isSkillMd)) return ''
  const folder = /^[^/]+\//.exec(names[0] ?? '')?.[0] ?? ''
  return names.every((name) => name.startsWith(folder)) ? folder : ''
}

/** Why these cannot be the paths of a skill's files together, as the end of a sentence about it. */
export function wrongSkillPaths(paths: readonly string[]): string | undefined {
  const known = new Set<string>()
  for (const path of paths) {
    const wrong = wrongSkillPath(path)
    if (wrong) return `${shownPath(path)} ${wrong}`
    // On many systems these would be the same file.
    const folded = path.normalize('NFC').toLowerCase()
    if (known.has(folded)) return `${shownPath(path)} is there twice, letter case aside`
    known.add(folded)
  }
  const folders = new Set([...known].flatMap(foldersOf))
  const both = [...known].find((path) => folders.has(path))
  if (both !== undefined) return `${shownPath(both)} is both a file and a folder`
  if (!paths.some(isSkillMd)) return `it has no ${SKILL_MD} at its top level or in its only folder`
  return undefined
}

/** A path in an error, which need not be as long as the caller made it. */
export function shownPath(path: string): string {
  return JSON.stringify(path.slice(0, 100))
}

/** The folders that a file is in: a/b/c is in a and a/b. */
function foldersOf(path: string): string[] {
  const parts = path.split('/')
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('/'))
}

const PROSE = /(^|\/)[^./]+$|\.(md|txt|rst)$/i

/** How a client shows a text file of a skill. */
export function contentType(path: string, mime: string): 'json' | 'csv' | 'text' | 'code' {
  if (mime === 'application/json') return 'json'
  if (mime === 'text/csv') return 'csv'
  return PROSE.test(path) ? 'text' : 'code'
}
