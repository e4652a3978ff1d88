import type { Random } from '../../lab/random.ts'
import { Editor } from './editor.ts'
import { LearningVisitor } from './learning_visitor.ts'
import { Reader } from './reader.ts'
import { Runner } from './runner.ts'
import type { Surroundings } from './surroundings.ts'
import { Tailer } from './tailer.ts'
import { Visitor } from './visitor.ts'
import { Writer } from './writer.ts'

/** Of each kind, how many: 78 in all. */
const WRITERS = 30
const VISITORS = 16
const LEARNING_VISITORS = 2
const EDITORS = 4
const RUNNERS = 8
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
      ...make(RUNNERS, 'n', (name, own) => new Runner(name, surroundings, own)),
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
