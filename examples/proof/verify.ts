/**
 * Verifies an export of Annals as docs/proof.md specifies it, with Node alone (22.18).
 * Usage: node verify.ts <export.ndjson>
 * It prints what it found, a line each, and exits with 1 if that is anything.
 */
import { createHash, randomUUID } from 'node:crypto'
import { createReadStream, realpathSync } from 'node:fs'

// biome-ignore lint/suspicious/noExplicitAny: what is verified may be anything
export type Fields = Record<string, any>
/** What an export has: when each session was created, and session, seq and hash of each link. */
export type Log = { header: Fields | undefined; created_at: Map<string, string>; links: Set<string> }

export const sha256 = (...parts: Array<string | Buffer>) =>
  parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest()
export const bytes = (hex: unknown) => Buffer.from(String(hex), 'hex')
export const lines = (of: Fields, names: string) => names.replace(/\w+ ?/g, (name) => `${of[name.trim()]}\n`)

/** Stands before the digits of numbers, which lose some of them when JavaScript parses them. */
const NUMBER = randomUUID()

export function parseExactly(text: string) {
  let isInString = false
  const marked = text.replace(/\\.|"|-?\d[\d.eE+-]*/g, (one) => {
    if (one === '"') isInString = !isInString
    return isInString || one === '"' ? one : `"${NUMBER}${one}"`
  })
  return JSON.parse(marked)
}

function canonical(value: unknown): string {
  if (typeof value === 'string' && value.startsWith(NUMBER)) return value.slice(NUMBER.length)
  if (Array.isArray(value)) return `[${value.map(canonical).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).map(([name, inner]) => [Buffer.from(name), name, inner] as const)
  members.sort(([one], [other]) => one.length - other.length || Buffer.compare(one, other))
  return `{${members.map(([, name, inner]) => `${JSON.stringify(name)}: ${canonical(inner)}`).join(', ')}}`
}

const CONTENT = ['type', 'role', 'format', 'key', 'occurred_at', 'data', 'meta']
export const contentHash = (entry: Fields) => sha256(canonical(CONTENT.map((name) => entry[name] ?? null)))
export const linkAfter = (link: Buffer, entry: Fields, content_hash: Buffer) =>
  sha256(link, lines(entry, 'seq id created_at kind'), content_hash)
export const genesis = (session_id: unknown, seq: number, forked_proof: unknown) =>
  sha256(`annals-proof-1\n${session_id}\n${seq - 1}\n${forked_proof ?? ''}`)

/** Readline would end a line at U+2028, too, which JSON has as it is. */
export async function* linesOf(path: string) {
  let rest = ''
  for await (const chunk of createReadStream(path, { encoding: 'utf8', highWaterMark: 2 ** 24 })) {
    const whole = (rest + chunk).split('\n')
    rest = whole.pop()!
    yield* whole
  }
  if (rest) yield rest
}

export async function checkExport(path: string, found: string[]): Promise<Log> {
  const log: Log = { header: undefined, created_at: new Map(), links: new Set() }
  let session: Fields = {}
  let link: Buffer | undefined
  for await (const text of linesOf(path)) {
    const line = JSON.parse(text)
    if (line.annals_export) log.header ??= line
    if (line.kind === 'session') {
      session = line
      link = undefined
      log.created_at.set(line.id, line.created_at)
    }
    if (line.kind !== 'event' && line.kind !== 'message') continue
    const name = `session ${line.session_id}, seq ${line.seq}`
    if (line.proof !== undefined) {
      const start = link ?? genesis(session.id, line.seq, session.forked_proof)
      link = bytes(line.proof)
      const isChained = linkAfter(start, line, contentHash(parseExactly(text))).equals(link)
      if (!isChained || line.session_id !== session.id) found.push(`${name}: it is not what was chained`)
      log.links.add(`${line.session_id} ${line.seq} ${line.proof}`)
    } else if (link) found.push(`${name}: it has no link, and those before it have`)
  }
  return log
}

export const readOf = (log: Log) => `${log.created_at.size} sessions, ${log.links.size} links`

export function report(read: string, found: string[]) {
  process.stdout.write(`${read}\n${found.join('\n') || 'Nothing was found.'}\n`)
  process.exitCode = found.length > 0 ? 1 : 0
}

if (import.meta.filename === realpathSync(process.argv[1]!)) {
  const [path, ...rest] = process.argv.slice(2)
  if (!path || rest.length > 0) throw new Error('Usage: node verify.ts <export.ndjson>')
  const found: string[] = []
  const log = await checkExport(path, found)
  if (!log.header) throw new Error(`${path} is not an export. For the proof of one entry, use anchors.ts.`)
  report(readOf(log), found)
}
