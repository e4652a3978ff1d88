import { readdir, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pathsIn, transportOf } from './data_directory.js'
import { observe } from './postmaster_file.js'
import { presenceOf, someoneListensOn } from './presence.js'
import { shortPathTo } from './short_path.js'

/** What killed processes left behind in a data directory, one sentence each. Read-only. */
export async function describeRemains(
  dataDir: string,
  name: string,
  transport = transportOf(process.platform),
): Promise<string[]> {
  const path = await realpath(dataDir)
  const { uid, gid } = await stat(path)
  const directory = { ...pathsIn(path, name, transport), uid, gid }
  const reach = await shortPathTo(directory)
  const remains: string[] = []
  const sighting = await observe(directory, reach)
  if (sighting.state === 'dead') remains.push('its PostgreSQL was killed and will recover')
  const names = await readdir(directory.clients).catch(() => [])
  const homes = names.filter((name) => !name.startsWith('.new-'))
  const alive = await Promise.all(
    homes.map((id) => someoneListensOn(presenceOf(directory, reach, join('clients', id), id))),
  )
  const dead = alive.filter((lives) => !lives).length
  if (dead > 0) remains.push(`${dead} killed processes are still registered`)
  if (sighting.state === 'ready' && homes.length > 0 && dead === homes.length)
    remains.push(`its PostgreSQL is running (process ${sighting.pid}), but nobody uses it`)
  const unfinished = (await readdir(path)).filter((name) => name.startsWith('creating-'))
  if (unfinished.length > 0) remains.push(`${unfinished.join(', ')} was never finished`)
  return remains
}
