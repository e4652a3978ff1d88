import { BenchFailure } from './failure.ts'
import type { BenchContext } from './part.ts'
import type { PostgresServer } from './postgres.ts'
import { startService } from './service.ts'

export type Options = Pick<BenchContext, 'quick' | 'full' | 'wrk' | 'rounds' | 'seconds' | 'directory'>

/** The context of one part, the details that it kept, and the end of everything that it started. */
export function openContext(part: string, options: Options, server: PostgresServer) {
  const steps: Array<() => unknown> = []
  const details: Record<string, unknown> = {}
  const ctx: BenchContext = {
    ...options,
    createDatabase: async () => {
      if (server.kind === 'cluster' && steps.length > 0)
        throw new BenchFailure('This part needs databases of its own, which a cluster does not give.')
      const database = await server.createDatabase()
      steps.push(() => database.drop())
      return database
    },
    startService: async (database, env = {}) => {
      const service = await startService({ DATABASE_URL: database.url, ...env })
      steps.push(() => service.stop())
      return service
    },
    some: (count) => (options.quick ? Math.ceil(count / 20) : count),
    warmUp: async (work) => {
      if (options.quick) return
      ctx.say('warming up')
      await work()
    },
    atEnd: (step) => steps.push(step),
    say: (sentence) => process.stderr.write(`${part}: ${sentence}\n`),
    detail: (name, value) => {
      details[name] = value
    },
  }
  const closeAll = async () => {
    for (const step of steps.splice(0).reverse()) {
      // One that fails to end must not keep the others.
      await Promise.resolve()
        .then(step)
        .catch((error) => ctx.say(`cleaning up: ${error}`))
    }
  }
  // An interruption may come while it closes already: both wait for the same end.
  let closed: Promise<void> | undefined
  const close = () => {
    closed ??= closeAll()
    return closed
  }
  return { ctx, details, close }
}
