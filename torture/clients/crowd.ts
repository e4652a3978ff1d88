import type { Random } from '../../lab/random.ts'
import type { Journal } from '../check/journal.ts'
import type { ServiceNode } from '../world/node.ts'
import { Editor, type Edits } from './editor.ts'
import { LearningVisitor, type Lessons } from './learning_visitor.ts'
import { Reader } from './reader.ts'
import { Tailer } from './tailer.ts'
import type { Traffic } from './traffic.ts'
import { Visitor } from './visitor.ts'
import { Writer } from './writer.ts'

/** A tenant: its id and the token that opens it. */
export interface Tenant {
  project_id: string
  token: string
}

/** A session that clients work on. */
export interface OpenSession {
  session_id: string
  tenant: Tenant
}

/** Shared by all clients: the nodes, the tenants, the sessions to work on, and the journal. */
export interface Surroundings {
  nodes: ServiceNode[]
  tenants: Tenant[]
  /** Of these, the one whose sessions a consumer of changes follows. */
  consumed: Tenant
  /** What learning spaces are given. */
  lessons: Lessons
  edits: Edits
  /** Sessions that were acknowledged, the newest last. */
  sessions: OpenSession[]
  journal: Journal
  traffic: Traffic
  /** False once clients should finish what they began. */
  isRunning: () => boolean
}

/** Of each kind, how many: 70 in all. */
const WRITERS = 30
const VISITORS = 16
const LEARNING_VISITORS = 2
const EDITORS = 4
const READERS = 6
const TAILERS = 12

/** The clients of one run. */
export class Crowd {
  readonly tailers: Tailer[]
  private readonly readers: Reader[]
  private readonly writers: Writer[]
  private working: Promise<unknown> = Promise.resolve()

  constructor(surroundings: Surroundings, random: Random) {
    const make = <T>(count: number, name: string, one: (name: string, random: Random) => T) =>
      Array.from({ length: count }, (_, index) => one(`${name}${index}`, random.fork(`${name}${index}`)))
    this.writers = [
      ...make(WRITERS, 'w', (name, own) => new Writer(name, surroundings, own)),
      ...make(VISITORS, 'v', (name, own) => new Visitor(name, surroundings, own)),
      ...make(LEARNING_VISITORS, 'l', (name, own) => new LearningVisitor(name, surroundings, own)),
      ...make(EDITORS, 'e', (name, own) => new Editor(name, surroundings, own)),
    ]
    this.readers = make(READERS, 'r', (name, own) => new Reader(name, surroundings, own))
    this.tailers = make(TAILERS, 't', (name, own) => new Tailer(name, surroundings, own))
  }

  start(): void {
    for (const tailer of this.tailers) tailer.start()
    this.working = Promise.all([...this.writers, ...this.readers].map((client) => client.run()))
  }

  /** Resolves when every write is settled and every read has ended; the tails go on. */
  finished(): Promise<unknown> {
    return this.working
  }

  close(): void {
    for (const client of [...this.writers, ...this.readers, ...this.tailers]) client.close()
  }
}
