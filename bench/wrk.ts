import { execFile, spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { BenchFailure } from './failure.ts'
import type { LoadOptions } from './load.ts'

/** A load by wrk (https://github.com/wg/wrk) in place of our own generator, for who wants another one's word. */
export async function runWrk(
  directory: string,
  {
    services,
    connections,
    seconds,
    requests,
  }: Pick<LoadOptions, 'services' | 'connections' | 'seconds' | 'requests'>,
): Promise<{ per_second: number }> {
  if (spawnSync('wrk', ['-v']).error) throw new BenchFailure('--wrk needs wrk: apt-get install wrk')
  const { url, token } = services[0]!
  const script = join(directory, 'requests.lua')
  await writeFile(script, scriptOf(requests, token))
  const args = ['-t1', `-c${connections}`, `-d${Math.ceil(seconds)}s`, '-s', script, url]
  const { stdout } = await promisify(execFile)('wrk', args)
  const rate = /^Requests\/sec:\s+([\d.]+)$/m.exec(stdout)
  if (!rate || /Non-2xx|Socket errors/.test(stdout)) throw new BenchFailure(`wrk said:\n${stdout}`)
  return { per_second: Number(rate[1]) }
}

/** Lua that sends the requests in turn. JSON's strings are Lua's, with another escape for what is not ASCII. */
function scriptOf(requests: LoadOptions['requests'], token: string): string {
  const lua = (text: string) => JSON.stringify(text).replace(/\\u([0-9a-f]{4})/g, '\\u{$1}')
  const rows = requests.map(
    ({ method, path, body = '' }) => `  { ${lua(method)}, ${lua(path)}, ${body ? lua(body) : 'nil'} },`,
  )
  return `local rows = {
${rows.join('\n')}
}
local made = {}
local at = 0
request = function()
  at = at % #rows + 1
  if not made[at] then
    local headers = { Authorization = ${lua(`Bearer ${token}`)} }
    if rows[at][3] then headers["Content-Type"] = "application/json" end
    made[at] = wrk.format(rows[at][1], rows[at][2], headers, rows[at][3])
  end
  return made[at]
end
`
}
