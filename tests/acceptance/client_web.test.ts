import { chmod, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { useClientCommands } from '../harness/client_commands.ts'
import { signInToConsole } from '../harness/console_session.ts'
import { useSharedService } from '../harness/service.ts'

const service = useSharedService()
const commands = useClientCommands(service)
const { annals, newSession } = commands

const NO_DISPLAY = { DISPLAY: '', WAYLAND_DISPLAY: '' }
const here = () => ({ ...NO_DISPLAY, DATABASE_URL: service.databaseUrl })

/** The status of signing in as the console does with what follows the `#` of its link. */
const signIn = async (link: string) => {
  const code = new URL(link).hash.slice('#code='.length)
  return (await signInToConsole(commands.api, { code })).answer.status
}

describe('--web', () => {
  it('prints a link to what the command shows, which signs in once, where there is no display', async () => {
    const id = await newSession({ configs: { agent: 'a b' } })
    const filter = encodeURIComponent('{"agent":"a b"}').replaceAll('%20', '+')
    for (const [args, path] of [
      [['show', id, '--from-seq', '7'], `/sessions/${id}?seq=7`],
      [['sessions', 'list', '--configs', '{"agent":"a b"}'], `/sessions?filter=${filter}`],
      [['spaces', 'show', id], `/spaces/${id}`],
      [['search', 'refund -paid'], '/search?q=refund+-paid'],
    ] as const) {
      const { code, stdout, stderr } = await annals([...args, '--web'], here())
      expect(code, stderr).toBe(0)
      const [address, secret] = stdout.split('#')
      expect([address, secret]).toEqual([
        `${service.node.url}/console${path}`,
        expect.stringMatching(/^code=[\w-]{43}$/),
      ])
      if (args[0] !== 'show') continue
      expect(await signIn(stdout)).toBe(200)
      expect(await signIn(stdout)).toBe(401)
    }
  })

  it('returns no code where this machine does not have the database', async () => {
    const id = await newSession()
    const { stdout, stderr } = await annals(['show', id, '--web'], {
      ...NO_DISPLAY,
      ANNALS_DATA_DIR: join(commands.directory, 'none'),
    })
    expect([stdout, stderr]).toEqual([
      `${service.node.url}/console/sessions/${id}`,
      expect.stringContaining('sign in there with an API key'),
    ])
  })

  it('leads a browser there by a file that only its user may read, and that is deleted', async () => {
    const id = await newSession()
    const opener = join(commands.directory, 'xdg-open')
    const seen = join(commands.directory, 'seen')
    await writeFile(
      opener,
      `#!/bin/sh\nstat -c %a "$1" > '${seen}'\necho "$1" >> '${seen}'\ncat "$1" >> '${seen}'\n`,
    )
    await chmod(opener, 0o755)
    const PATH = `${commands.directory}:${process.env.PATH}`
    const { code, stdout, stderr } = await annals(['show', id, '--web'], { ...here(), DISPLAY: ':9', PATH })
    expect([code, stdout], stderr).toEqual([0, ''])
    const [mode, file, page] = (await readFile(seen, 'utf8')).split('\n')
    expect(mode).toBe('600')
    expect(page).toContain(`url=${service.node.url}/console/sessions/${id}#code=`)
    await expect(readFile(file!)).rejects.toThrow('ENOENT')
  })
})
