import { Annals } from '@annals/client'
import { describe, expect, it, vi } from 'vitest'
import { useClientCommands } from '../harness/client_commands.ts'
import { expectOk } from '../harness/expectations.ts'
import { search, switchSearch, untilIndexed } from '../harness/search.ts'
import { useSharedService } from '../harness/service.ts'

const service = useSharedService()
const commands = useClientCommands(service)
const { annals, values, newSession } = commands

describe('annals search', () => {
  it('lists what was found, can be narrowed, and shows the session from a hit on', async () => {
    const { api, token } = commands
    const id = await newSession()
    const { project_id } = expectOk(await api.getSession(id))
    for (const text of ['before', 'where is the refund?', 'after'])
      expect((await annals(['append', id, '--type', 'note', '--data', JSON.stringify({ text })])).code).toBe(
        0,
      )
    const off = await annals(['search', 'refund'])
    expect(off).toMatchObject({ code: 6, stderr: expect.stringContaining('--search on') })
    await switchSearch(service.adminClient(), project_id, true)
    await vi.waitFor(async () => expect(expectOk(await search(api, 'refund')).items).toHaveLength(1), {
      timeout: 30_000,
    })
    const hit = { session_id: id, seq: 2, kind: 'event', type: 'note' }
    expect(await values('search', 'refund')).toMatchObject([hit])
    expect(await values('search', 'refund', '--role', 'user')).toEqual([])
    expect(await values('search', 'refund', '--session', id, '--from', '1d', '--relevance')).toMatchObject([
      hit,
    ])
    expect((await values('search', 'refund', '--show', '1')).map(({ seq }) => seq)).toEqual([2, 3])
    expect(await values('search', '-paid refund', '--kind', 'event')).toMatchObject([hit])
    expect(await values('search', '-where refund')).toEqual([])
    expect(await values('search', 'refund', '-paid', '--kind', 'event')).toMatchObject([hit])
    expect(await values('search', '-where', '--kind', 'event', 'refund')).toEqual([])
    for (const query of [['-paid'], ['--', '-paid']])
      expect(await annals(['search', ...query])).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('at least one word'),
      })
    expect(await annals(['search', 'refund', '--usr', 'omar'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("unknown option '--usr'"),
    })

    await untilIndexed(api)
    const client = new Annals({ url: service.node.url, token })
    const page = await client.search('refund', { kind: 'event', limit: 1 }).page()
    expect(page).toMatchObject({ items: [hit], has_more: false, indexed_through: expect.any(String) })
  })
})
