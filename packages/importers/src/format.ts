import { digestOf } from './ids.js'
import type { Output } from './output.js'
import type { Head } from './reading/head.js'
import type { Piece } from './reading/pieces.js'
import type { JsonObject } from './records.js'

/** Reads the pieces of one file. */
export interface Parser {
  /** A piece that is JSON. What it writes nothing of is kept raw. */
  read(value: unknown, piece: Piece): void
  /** All pieces were read. */
  end?(): void
}

/** A parser's file. */
export interface FileFacts {
  /** Its path, as far as it was given: `projects/shop/7c0c.jsonl`. */
  name: string
  head: Head
  /** The end of the folder's path, part by part. */
  folders: readonly string[]
  /** The files of its folder or archive, for formats that ask. */
  beside: readonly string[]
  /** What the files of one archive tell each other. */
  shared: Map<string, unknown>
}

/** A format of other tools. */
export interface Format {
  name: string
  /** What it is, for people. */
  title: string
  /** `lines`: JSON lines. `document`: JSON documents. `text`: lines that are no JSON. Undefined where either may be. */
  shape?: 'lines' | 'document' | 'text'
  /** Members of a document whose arrays are read element by element. */
  streamed?: readonly string[]
  /** Archives that are all of this format, and which of their files only repeat what others have. */
  archive?: { readonly ending: RegExp; readonly repeats: RegExp }
  /** Its messages may refer to pictures in files next to it. */
  has_pictures?: true
  /** What stands beside a file counts. */
  asks_beside?: true
  /** Whether a sample of a file is of this format. */
  knows(sample: JsonObject, head: Head): boolean
  open(output: Output, file: FileFacts): Parser
}

/** The last part of a path, without its ending. */
export function stemOf(name: string): string {
  return (name.split(/[\\/]/).at(-1) ?? name).replace(
    /\.(?:jsonl?|ndjson|traj|eval|zip|gz|txt|md)(?:\.gz)?$/i,
    '',
  )
}

/** What names the conversation of a file whose lines name none: its name, and how it begins. */
export function keyOfFile({ name, head }: FileFacts): string {
  return `${stemOf(name)} ${digestOf(head.samples[0] ?? null)}`
}
