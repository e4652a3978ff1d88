import { type ChildProcess, spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Defaults for `less`: it shows colours, and leaves the text on the screen. */
const LESS = 'RX'

/** The program that shows what does not fit on the screen, with its options; undefined: none. */
export function pagerOf(env: NodeJS.ProcessEnv): string | undefined {
  const program = env.ANNALS_PAGER ?? env.PAGER ?? 'less'
  const [name = ''] = program.trim().split(/\s/)
  return name === '' || name === 'cat' || !isThere(name, env.PATH ?? '') ? undefined : program
}

function isThere(name: string, path: string): boolean {
  const places = name.includes('/') ? [name] : path.split(delimiter).map((folder) => join(folder, name))
  return places.some((place) => {
    try {
      accessSync(place, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

/**
 * Lines on a terminal: they are held until they no longer fit on it, and then go to a pager.
 *
 * States: holding, then paging, if there are too many.
 */
export class PagedLines {
  private held: string[] = []
  private child: ChildProcess | undefined

  constructor(
    private readonly program: string,
    private readonly stdout: NodeJS.WriteStream,
  ) {}

  print(lines: string[]): void {
    this.held.push(...lines)
    if (!this.child && this.held.length < (this.stdout.rows || 24)) return
    this.child ??= startPager(this.program)
    this.child.stdin!.write(this.taken())
  }

  /** Resolves once the pager has taken what it was given. */
  async taking(): Promise<void> {
    const stdin = this.child?.stdin
    if (!stdin?.writableNeedDrain) return
    await new Promise<void>((resolve) => stdin.once('drain', resolve).once('close', resolve))
  }

  /** Prints what is held, or waits until the person has closed the pager. */
  async end(): Promise<void> {
    const { child } = this
    if (!child) return void this.stdout.write(this.taken())
    child.stdin!.end()
    if (child.exitCode === null && child.signalCode === null)
      await new Promise((resolve) => child.once('close', resolve))
  }

  private taken(): string {
    const text = this.held.map((line) => `${line}\n`).join('')
    this.held = []
    return text
  }
}

function startPager(program: string): ChildProcess {
  const env = { ...process.env, LESS: process.env.LESS ?? LESS }
  // Through a shell, since the variable may have options. The pager's own messages go to stderr.
  const child = spawn(program, { shell: true, env, stdio: ['pipe', 'inherit', 'inherit'] })
  const stdin = child.stdin!
  stdin.on('error', () => {})
  // Ctrl-C is for the pager: a command that ended at it would leave the terminal to two programs.
  const ignore = () => {}
  const others = process.listeners('SIGINT')
  process.removeAllListeners('SIGINT').on('SIGINT', ignore)
  child.once('close', () => {
    process.off('SIGINT', ignore)
    for (const listener of others) process.on('SIGINT', listener)
    // Closed before all was read: nobody wants the rest.
    if (!stdin.writableEnded) process.exit(0)
  })
  return child
}
