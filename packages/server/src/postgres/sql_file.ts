import { readFileSync } from 'node:fs'
import { packagedFile } from '../version.js'

/** SQL that stands in a file of its own, which comes with the package. `path`: below `src`, such as `log/append/append_entries.sql`. */
export function sqlFile(path: string): string {
  return readFileSync(packagedFile(`src/${path}`), 'utf8')
}

/** Puts values in the places of a text that name them in braces. @throws if the text has no such place */
export function fill(text: string, values: Readonly<Record<string, string>>): string {
  return Object.entries(values).reduce((filled, [name, value]) => {
    const parts = filled.split(`{${name}}`)
    if (parts.length === 1) throw new Error(`No place in the SQL is named {${name}}.`)
    return parts.join(value)
  }, text)
}
