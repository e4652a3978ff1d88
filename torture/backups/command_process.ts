import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { endWithUs } from '../../lab/children.ts'
import { ANNALS } from '../../lab/launch_service.ts'
import { ROOT } from '../../lab/root.ts'

const PROGRAM = fileURLToPath(new URL('lab/kept_process.mjs', ROOT))
const { PATH = '', HOME = '/' } = process.env
const ENVIRONMENT = { PATH, HOME, NO_COLOR: '1' }

interface Answer {
  code: number | null
  stdout: string
  stderr: string
}

/** A process that runs `annals` commands one after the other: most of what a command does is to start. */
export class CommandProcess {
  private readonly child: ChildProcess
  private readonly fallen: Promise<[Answer]>

  private constructor(child: ChildProcess) {
    this.child = child
    const stderr = 'The process of the command ended.'
    this.fallen = once(child, 'exit').then(() => [{ code: null, stdout: '', stderr }])
  }

  static async start(): Promise<CommandProcess> {
    const child = endWithUs(
      fork(PROGRAM, { env: ENVIRONMENT, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] }),
    )
    await once(child, 'message')
    return new CommandProcess(child)
  }

  /** Runs a command to its end; the code is null if the whole process ended. */
  async run(DATABASE_URL: string, args: readonly string[]): Promise<{ code: number | null; output: string }> {
    const answered = once(this.child, 'message') as Promise<[Answer]>
    this.child.send({ bin: ANNALS, args, env: { ...ENVIRONMENT, DATABASE_URL } })
    const [{ code, stdout, stderr }] = await Promise.race([answered, this.fallen])
    return { code, output: stdout + stderr }
  }

  end(): void {
    this.child.kill()
  }
}
