import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { DECEIVING } from '../../packages/messages/src/json/index.ts'
import { runCommand } from '../harness/command_process.ts'
import { execute } from '../harness/sql.ts'
import { createTestDatabase, reasonForNoOwnDatabase } from '../harness/test_database.ts'

/** Turns around what follows, moves the cursor in terminals of 8 bits, ends the line, cannot be seen. */
const HOSTILE = 'shop\u202eevil\u009b2J\u001b[2Jend\u200b\u2028 annals: nothing is wrong'

it.skipIf(reasonForNoOwnDatabase())(
  'no command on the database prints a character of a project’s name that deceives, as a text or as JSON',
  async () => {
    const [database, restored] = [await createTestDatabase(), await createTestDatabase()]
    const directory = await mkdtemp(join(tmpdir(), 'annals-names-'))
    onTestFinished(async () => {
      await Promise.all([database.drop(), restored.drop(), rm(directory, { recursive: true })])
    })
    const shown: { command: string; text: string }[] = []
    const run = async (args: string[], url = database.url) => {
      const { code, stdout, stderr } = await runCommand(args, { DATABASE_URL: url })
      shown.push({ command: args.join(' '), text: stdout + stderr })
      return { code, stdout }
    }
    const name = `${HOSTILE} ${randomBytes(4).toString('hex')}`
    const [backup, damaged] = ['whole', 'damaged'].map((file) => join(directory, file)) as [string, string]
    const created = await run(['project', 'create', name, '--json'])
    const { project } = JSON.parse(created.stdout) as { project: { id: string; name: string } }
    expect(project.name).toBe(name)
    for (const args of [
      ['project', 'create', `${name} 2`],
      ['project', 'list'],
      ['project', 'list', '--json'],
      ['project', 'set', project.id, '--max-tails', '9'],
      ['project', 'set', project.id, '--max-tails', '8', '--json'],
      ['token', 'create', '--project', project.id, '--name', HOSTILE],
      ['token', 'create', '--project', project.id, '--name', HOSTILE, '--json'],
      ['token', 'list', '--project', project.id],
      ['token', 'list', '--project', project.id, '--json'],
      ['key', '--project', project.id],
      ['export', '--project', project.id, '--output', join(directory, 'exported')],
      ['import', join(directory, 'exported'), '--project', project.id],
      ['prune', '--project', project.id, '--older-than', '1d'],
      ['verify'],
      ['backup', backup],
    ])
      expect(await run(args), args.join(' ')).toMatchObject({ code: 0 })
    // What it finds depends on the server.
    for (const args of [['doctor'], ['doctor', '--json']]) await run(args)
    expect(await run(['restore', backup], restored.url)).toMatchObject({ code: 0 })
    // The project is named, and what is wrong with it.
    const bytes = await readFile(backup)
    const { sections } = JSON.parse(bytes.toString().trimEnd().split('\n').at(-1)!) as {
      sections: { project: string; offset: number }[]
    }
    bytes.write('x', sections.find(({ project }) => project === name)!.offset + 3)
    await writeFile(damaged, bytes)
    expect(await run(['restore', damaged], restored.url)).toMatchObject({ code: 1 })
    // A blob without its bytes.
    const damage = `INSERT INTO blobs (project_id, id, sha256, bytes, created_at) VALUES ($1, gen_random_uuid(), $2, 5, now())`
    await execute(database.url, damage, [project.id, 'a'.repeat(64)])
    for (const args of [['verify'], ['verify', '--json']]) expect(await run(args)).toMatchObject({ code: 1 })
    for (const args of [
      ['project', 'create', name],
      ['export', '--project', `${name} 3`],
    ])
      expect((await run(args)).code).toBeGreaterThan(0)
    expect(shown.filter(({ text }) => text.match(DECEIVING) !== null)).toEqual([])
    expect(shown.filter(({ text }) => text.includes('\\u202e')).length).toBeGreaterThan(10)
  },
)
