import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { useSharedService } from '../harness/service.ts'
import { userProgram } from '../harness/user_program.ts'

const service = useSharedService()
const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

async function run(name: string, more: Record<string, string> = {}) {
  const program = await userProgram(read(`examples/runs/${name}.ts`))
  try {
    await program.translate()
    const { token } = await service.newProject()
    return await program.run({ ANNALS_URL: service.node.url, ANNALS_API_KEY: token, ...more })
  } finally {
    await program.remove()
  }
}

const tasks = (first: number) => [0, 1, 2, 3, 4].map((n) => `${first + 4 * n} done`).join(' ')

it.each([
  ['worker_pool', `${[0, 1, 2, 3].map(tasks).join('\n')}\n`],
  ['approval', 'approved: {"to":"ada","eur":40}\nannals.request\nannals.resolution\npaid\n'],
])(
  'the tutorial %s is on the page or linked from it, and prints what it says',
  async (name, stdout) => {
    const code = read(`examples/runs/${name}.ts`)
    const page = read('docs/runs.md')
    expect(page.includes(`\`\`\`ts\n${code}\`\`\``) || page.includes(`](../examples/runs/${name}.ts)`)).toBe(
      true,
    )
    expect(code.split('\n').length).toBeLessThanOrEqual(45)
    expect(await run(name)).toEqual({ code: 0, stdout, stderr: '' })
  },
  120_000,
)

it.each(['two_runners', 'stop_button', 'lost_input', 'approved_arguments'])(
  'the example %s passes, and fails without what it shows',
  async (name) => {
    const [passed, failed] = await Promise.all([run(name), run(name, { WITHOUT: '1' })])
    expect(passed, JSON.stringify(passed)).toMatchObject({ code: 0, stderr: '' })
    expect(failed, JSON.stringify(failed)).toMatchObject({ code: 1, stderr: '' })
  },
  120_000,
)
