import { rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Postgres } from '../world/postgres.ts'
import { CommandProcess } from './command_process.ts'

const SHOWN_LENGTH = 1_500

interface Time {
  runs: number
  ms: number
}

/** What a drill has seen. */
export class Tally {
  backups = 0
  exports = 0
  private bytes = 0
  readonly findings: string[] = []
  private readonly times: Record<string, Time> = {}

  note(finding: string): void {
    this.findings.push(finding)
    process.stdout.write(`${finding.slice(-SHOWN_LENGTH)}\n`)
  }

  async timed<T>(what: string, work: () => Promise<T>): Promise<T> {
    const begun = performance.now()
    const done = await work()
    const { runs, ms } = this.times[what] ?? { runs: 0, ms: 0 }
    this.times[what] = { runs: runs + 1, ms: ms + performance.now() - begun }
    return done
  }

  async countFile(path: string): Promise<void> {
    this.bytes += (await stat(path)).size
  }

  get summary(): string {
    return `${this.backups} backups and ${this.exports} exports restored and sound (${Math.round(this.bytes / 1e6)} MB), ${this.findings.length} findings`
  }

  /** How long each step took; the lanes share the machine. */
  get means(): string {
    const mean = ([what, { runs, ms }]: [string, Time]) => `${what} ${(ms / runs / 1_000).toFixed(1)} s`
    return Object.entries(this.times).map(mean).join(', ')
  }
}

/** Takes one backup or export after the other, restores it into a database of its own, and verifies it. */
export class Lane {
  private readonly postgres: Postgres
  private readonly tally: Tally
  private readonly commands: CommandProcess
  private readonly database: string
  private readonly path: string

  private constructor(
    postgres: Postgres,
    tally: Tally,
    commands: CommandProcess,
    [work, name]: [string, string],
  ) {
    this.postgres = postgres
    this.tally = tally
    this.commands = commands
    this.database = name
    this.path = join(work, name)
  }

  static async open(postgres: Postgres, tally: Tally, work: string, name: string): Promise<Lane> {
    return new Lane(postgres, tally, await CommandProcess.start(), [work, name])
  }

  async backUp(proof: boolean): Promise<void> {
    const { database, path, tally } = this
    if (!(await this.passes('annals', 'backup', path))) return
    await this.newDatabase(database, 'empty')
    const isSound =
      // Which verifies, but for the links of chains.
      (await this.passes(database, 'restore', path)) &&
      (!proof || (await this.passes(database, 'verify', '--proof')))
    if (isSound) tally.backups += 1
    await this.finish()
  }

  async exportProject(name: string): Promise<void> {
    const { database, path, tally } = this
    const to = ['--project', 'target']
    if (!(await this.passes('annals', 'export', '--project', name, '--output', path))) return
    await this.newDatabase(database, 'with_project')
    const isSound =
      (await this.passes(database, 'import', path, ...to)) &&
      (await this.passes(database, 'verify', '--proof', ...to))
    if (isSound) tally.exports += 1
    await this.finish()
  }

  async passes(database: string, ...args: string[]): Promise<boolean> {
    const { code, output } = await this.tally.timed(args[0]!, () =>
      this.commands.run(this.postgres.url(database), args),
    )
    if (code === 0) return true
    this.tally.note(`annals ${args.join(' ')} ended with ${code}:\n${output}`)
    return false
  }

  newDatabase(name: string, template?: string): Promise<unknown> {
    const statement = `CREATE DATABASE ${name} OWNER annals${template ? ` TEMPLATE ${template}` : ''}`
    return this.tally.timed('create', () => this.postgres.ask(statement))
  }

  close(): void {
    this.commands.end()
  }

  private async finish(): Promise<void> {
    await this.tally.countFile(this.path)
    await rm(this.path)
    await this.tally.timed('drop', () => this.postgres.ask(`DROP DATABASE ${this.database} WITH (FORCE)`))
  }
}
