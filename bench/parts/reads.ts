import { loadLongSession } from '../long_session.ts'
import { NEEDS_PROC, watchMemory } from '../memory.ts'
import type { BenchContext, Figure, Part } from '../part.ts'
import type { Service } from '../service.ts'
import { callApi, createSessions } from '../sessions.ts'

/** How much memory the service takes for long reads: its highest resident size meanwhile. */
export const reads: Part = {
  name: 'reads',
  describe: 'the memory that long reads take: large pages, long sessions, copies, many tails',
  run: async (ctx) => {
    const count = ctx.quick ? 500 : 100_000
    const large_messages = ctx.quick ? 5 : 200
    const tails = ctx.quick ? 20 : 1_000
    const service = await ctx.startService(await ctx.createDatabase())
    const [long = '', large = ''] = await createSessions(service, 2)
    ctx.say(`loading ${count} entries and ${large_messages} messages of 1 MB`)
    await loadLongSession(service, long, count)
    await loadLargeMessages(service, large, large_messages)

    const read = (session: string, rest: string) => () => drain(service, `/api/v1/session/${session}/${rest}`)
    const copy = { method: 'POST', path: `/api/v1/session/${long}/copy` }
    return [
      await peak(
        ctx,
        service,
        `a page of ${large_messages} messages of 1 MB`,
        read(large, 'messages?limit=200'),
      ),
      await peak(
        ctx,
        service,
        `${count} messages and events, own format`,
        read(long, 'messages?with_events=true'),
      ),
      await peak(
        ctx,
        service,
        `${count} messages and events, as gemini`,
        read(long, 'messages?format=gemini'),
      ),
      await peak(ctx, service, `copying a session of ${count}`, () => callApi(service, copy)),
      await peak(ctx, service, `${tails} idle tails`, () => holdTails(service, long, tails, count)),
    ]
  },
}

async function peak(
  ctx: BenchContext,
  service: Service,
  name: string,
  work: () => Promise<unknown>,
): Promise<Figure> {
  ctx.say(name)
  const seen = await watchMemory(service.pid, work)
  ctx.detail(name, seen)
  const figure = { name: `highest RSS, ${name}`, unit: 'MB', better: 'lower' } as const
  return seen ? { ...figure, values: [seen.peak_mb] } : { ...figure, values: [], note: NEEDS_PROC }
}

async function loadLargeMessages(service: Service, session: string, count: number): Promise<void> {
  const blob = { role: 'user', content: 'A long day in an airport. '.repeat(38_000) }
  const path = `/api/v1/session/${session}/messages`
  for (let index = 0; index < count; index++) {
    await callApi(service, { method: 'POST', path, body: JSON.stringify({ blob }) })
  }
}

async function drain(service: Service, path: string): Promise<void> {
  const answer = await fetch(`${service.url}${path}`, {
    headers: { authorization: `Bearer ${service.token}` },
  })
  for await (const _ of answer.body ?? []);
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}`)
}

/** Opens tails at the end of a session, waits a second, and closes them. */
async function holdTails(service: Service, session: string, count: number, after_seq: number): Promise<void> {
  const stop = new AbortController()
  const headers = { authorization: `Bearer ${service.token}`, accept: 'text/event-stream' }
  const path = `${service.url}/api/v1/session/${session}/timeline?after_seq=${after_seq}`
  const tails = Array.from({ length: count }, () => fetch(path, { headers, signal: stop.signal }))
  for (const tail of await Promise.all(tails)) if (!tail.ok) throw new Error(`answered ${tail.status}`)
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  stop.abort()
}
