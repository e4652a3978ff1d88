import * as jose from 'jose'
import { describe, expect, it, vi } from 'vitest'
import { tokenFor } from '../harness/access_requests.ts'
import { runCommand } from '../harness/command_process.ts'
import { expectOk } from '../harness/expectations.ts'
import { useService } from '../harness/service.ts'
import { reasonForNoOwnDatabase } from '../harness/test_database.ts'

const service = useService()
/** A node takes a new key within 5 seconds; a machine under load takes longer. */
const SOON = { timeout: 30_000, interval: 200 }

const rotate = async (...args: string[]) => {
  const { code, stdout, stderr } = await runCommand(['tokens', 'rotate', ...args], {
    DATABASE_URL: service.databaseUrl,
  })
  expect(code, stderr).toBe(0)
  return stdout
}

// In a database that all files share, it would end the tokens of the others.
describe.skipIf(reasonForNoOwnDatabase())('annals tokens rotate', () => {
  it('has another key sign at every node; older tokens stay valid, and with --now they end', async () => {
    const project = await service.newProject()
    const nodes = [service.node, await service.startNode()]
    const apis = await Promise.all(nodes.map((node) => service.newClient({ token: project.token, node })))
    const { id } = expectOk(await apis[0]!.createSession({}), 201)
    const issued = () => Promise.all(apis.map((api) => tokenFor(api, { session_id: id }, ['read'])))
    const generations = (tokens: string[]) => tokens.map((token) => jose.decodeProtectedHeader(token).kid)
    const statuses = (token: string) =>
      Promise.all(
        nodes.map(
          async (node) =>
            (await service.rawClient(token, node).request('GET', `/api/v1/session/${id}`)).status,
        ),
      )
    const first = await issued()
    expect(generations(first)).toEqual(['1', '1'])
    for (const token of first) expect(await statuses(token)).toEqual([200, 200])

    expect(await rotate()).toContain('Key 2 signs new tokens. Tokens of older keys stay valid')
    await vi.waitFor(async () => expect(generations(await issued())).toEqual(['2', '2']), SOON)
    const second = await issued()
    for (const token of [...first, ...second]) expect(await statuses(token)).toEqual([200, 200])

    expect(await rotate('--now')).toContain('Key 3 signs new tokens. Tokens of older keys have ended.')
    for (const token of [...first, ...second])
      await vi.waitFor(async () => expect(await statuses(token)).toEqual([401, 401]), SOON)
    await vi.waitFor(async () => {
      const third = await issued()
      expect(generations(third)).toEqual(['3', '3'])
      for (const token of third) expect(await statuses(token)).toEqual([200, 200])
    }, SOON)
  })
})
