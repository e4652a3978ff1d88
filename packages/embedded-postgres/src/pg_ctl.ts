import { type ChildProcess, spawn } from 'node:child_process'
import { basename, join } from 'node:path'
import { nameForServer } from './cluster.js'
import { type Engine, findEngine } from './engine.js'
import { EmbeddedPostgresError } from './failures.js'
import type { Place } from './place.js'
import { isAlive } from './postmaster_file.js'
import { APART, programEnvironment, runProgram } from './run_program.js'
import { reasonIn } from './server_log.js'
import { serverOptions } from './settings.js'
import { passwordIn, portIn } from './tcp.js'

/** Longer than any recovery: who waits for pg_ctl has a patience of its own. */
const PATIENCE_S = 86_400

/**
 * Starts the server by pg_ctl, which ends with 0 once the server is up, and otherwise when it has failed. On Windows,
 * PostgreSQL refuses to run as an administrator, and pg_ctl takes those rights from it; and what pg_ctl started goes
 * on when we end, whose own children Windows would end with us.
 */
export async function startByPgCtl(place: Place, engine: Engine): Promise<ChildProcess> {
  const { log, cluster } = place.directory
  // Without it, nobody would get in.
  await passwordIn(cluster)
  const options = serverOptions(place.directory, await portIn(place.directory)).join(' ')
  const paths = ['--pgdata', nameForServer(cluster), '--log', join('..', basename(log))]
  return spawn(engine.pgCtl, ['start', '--wait', '-t', `${PATIENCE_S}`, ...paths, '--options', options], {
    ...place.account,
    ...APART,
    cwd: cluster,
    env: programEnvironment(),
    stdio: 'ignore',
  })
}

/** Sends what PostgreSQL takes for a signal: Windows has none, and Node ends a process there in their place. */
export async function signalByPgCtl(place: Place, pid: number, signal: NodeJS.Signals): Promise<void> {
  const { directory, account, say } = place
  const { pgCtl } = await findEngine(directory, account, say)
  const { code, output } = await runProgram(pgCtl, ['kill', signal.replace('SIG', ''), `${pid}`], { account })
  if (code === 0 || !isAlive(pid)) return
  throw new EmbeddedPostgresError(
    `PostgreSQL (process ${pid}) cannot be stopped (${reasonIn(output)}): end it.`,
  )
}
