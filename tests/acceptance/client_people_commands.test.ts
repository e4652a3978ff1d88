import { describe, expect, it } from 'vitest'
import { useClientCommands } from '../harness/client_commands.ts'
import { expectOk } from '../harness/expectations.ts'
import { newPerson } from '../harness/people.ts'
import { useSharedService } from '../harness/service.ts'

const service = useSharedService()
const commands = useClientCommands(service)

async function administrator() {
  const { project_id } = expectOk(await commands.api.request<{ project_id: string }>('GET', '/api/v1/key'))
  const ada = await newPerson(service.databaseUrl, project_id, 'admin')
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await commands.annals(args, { ANNALS_TOKEN: ada.token })
    return { code, stdout, stderr }
  }
  return { ada, run }
}

describe('annals members', () => {
  it('invites by address, lists, changes a role by address, and removes', async () => {
    const { ada, run } = await administrator()
    expect((await run('members', 'add', 'Bob@Example.com', 'viewer')).code).toBe(0)
    expect((await run('members', 'role', 'bob@example.com', 'member')).code).toBe(0)
    const { stdout } = await run('members', 'list', '--json')
    const listed = stdout.split('\n').map((line) => JSON.parse(line) as { email: string; role: string })
    expect(listed.map(({ email, role }) => `${email} ${role}`)).toEqual([
      `${ada.email} admin`,
      'bob@example.com member',
    ])
    const refused = await run('members', 'remove', ada.email, '--yes')
    expect(refused.code).not.toBe(0)
    expect(refused.stderr).toMatch(/last/)
    expect((await run('members', 'remove', 'bob@example.com', '--yes')).code).toBe(0)
    const absent = await run('members', 'remove', 'bob@example.com', '--yes')
    expect(absent.stderr).toMatch(/No member has the address or id bob@example\.com/)
  })
})

describe('annals tokens personal', () => {
  it('lists the tokens of whoever asks, which revoke ends', async () => {
    const { ada, run } = await administrator()
    const { stdout } = await run('tokens', 'personal', '--json')
    expect(JSON.parse(stdout)).toMatchObject({ id: ada.key_id, name: 'test' })
    expect((await run('tokens', 'revoke', ada.key_id)).code).toBe(0)
    const { code, stderr } = await commands.annals(['tokens', 'personal'])
    expect(code).not.toBe(0)
    expect(stderr).toMatch(/is not personal/)
  })
})
