import { describe, expect, it } from 'vitest'
import { expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'
import { range, useTails } from '../harness/tails.ts'
import { issueToken } from '../harness/tokens.ts'

const service = useSharedService()
const tails = useTails(service)

describe('a live tail ends', () => {
  it('when its session is deleted, at each node', async () => {
    expectOk(await tails.log.addEvent())
    const open = [await tails.open(), await tails.open({ node: service.secondNode })]
    for (const tail of open) await tail.received(1)
    expectOk(await tails.api.deleteSession(tails.log.id))
    for (const tail of open) await tail.whenEnded(15_000)
  })

  it('within six seconds of the revocation of its token, at each node, and leaves others open', async () => {
    const { id, token } = await issueToken(service.adminClient(), tails.project.id, { name: 'tail' })
    expectOk(await tails.log.addEvent())
    const open = [await tails.open({ token }), await tails.open({ token, node: service.secondNode })]
    const other = await tails.open()
    for (const tail of [...open, other]) await tail.received(1)
    expectOk(
      await service.adminClient().request('DELETE', `/admin/v1/projects/${tails.project.id}/tokens/${id}`),
    )
    // Six, and what a slow machine takes.
    await Promise.all(open.map((tail) => tail.whenEnded(8_000)))
    expectOk(await tails.log.addEvent())
    await other.received(2)
    expect(other.ended).toBe(false)
  })

  it('when its token expires', async () => {
    const expires_at = new Date(Date.now() + 8_000).toISOString()
    const { token } = await issueToken(service.adminClient(), tails.project.id, { name: 'short', expires_at })
    const tail = await tails.open({ token })
    expect(tail.status).toBe(200)
    await tail.whenEnded(20_000)
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expires_at))
  })

  it('with SIGTERM of the node, which exits 0 in time with 50 open', async () => {
    const node = await service.startNode()
    const open = await Promise.all(range(1, 50).map(() => tails.open({ node })))
    expectOk(await tails.log.addEvent())
    for (const tail of open) await tail.received(1)
    const startedAt = Date.now()
    expect((await node.stop()).code).toBe(0)
    expect(Date.now() - startedAt).toBeLessThan(10_000)
    for (const tail of open) await tail.whenEnded()
  })
})
