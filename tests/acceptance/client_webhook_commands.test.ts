import { describe, expect, it } from 'vitest'
import { useClientCommands } from '../harness/client_commands.ts'
import { useSharedService } from '../harness/service.ts'

const { annals } = useClientCommands(useSharedService())

describe('annals webhooks', () => {
  it('creates with the secret alone on stdout, lists what waits and failed, and deletes by URL', async () => {
    const url = 'https://agents.example.com/hook'
    const created = await annals([
      'webhooks',
      'create',
      url,
      '--events',
      'message,event.tool_call',
      '--no-json',
    ])
    expect(created.stdout).toMatch(/^whsec_\S+$/)
    const { stdout } = await annals(['webhooks', 'list', '--json'])
    expect(JSON.parse(stdout)).toMatchObject({
      url,
      events: ['message', 'event.tool_call'],
      waiting_sessions: 0,
      given_up: 0,
      last_error: null,
    })
    const table = await annals(['webhooks', 'list', '--no-json'])
    expect(table.stdout).toMatch(/url +events +waiting +given up +last error +id/i)
    expect((await annals(['webhooks', 'delete', url, '--yes'])).code).toBe(0)
    expect((await annals(['webhooks', 'list', '--no-json'])).stdout).toMatch(/There are no webhooks/)
  })

  it('refuses an unknown webhook and an unknown kind of event with what to do', async () => {
    const absent = await annals(['webhooks', 'delete', 'https://nobody.example.com/', '--yes'])
    expect(absent.stderr).toMatch(/No webhook has the id or URL https:\/\/nobody\.example\.com\//)
    const wrong = await annals(['webhooks', 'create', 'https://agents.example.com/', '--events', 'deed'])
    expect(wrong.code).not.toBe(0)
    expect(wrong.stderr).toMatch(/events/)
  })
})
