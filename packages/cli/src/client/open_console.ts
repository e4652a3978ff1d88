import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { readConfig } from '@annals/kits/configuration/config.js'
import { AnnalsError } from '@annals/kits/errors.js'
import type { Command } from 'commander'
import { withDatabase } from '../database/with_database.js'
import { tell } from '../terminal/output.js'
import type { Connection } from './connection.js'
import { isOnThisMachine } from './embedded_profile.js'

/** How long a browser takes to read the page that leads to the console. */
const READ_MS_MAX = 3_000

export interface WebOption {
  web?: boolean
}

/** Adds `--web`. */
export function withWeb(command: Command): Command {
  return command.option('--web', 'open the console at it, or print the link where there is no display')
}

/**
 * Opens the console at a path below it, with the parameters that are given. Where this machine has the service's
 * database, the link signs in, once.
 */
export async function openConsole(
  { annals, url }: Connection,
  path: string,
  query: Record<string, string | undefined> = {},
): Promise<void> {
  const { items } = await annals.sessions.list({ limit: 1 }).page()
  const code = items[0] && (await signInCode(url, items[0].project_id))
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined)
  const link = new URL(`${url.replace(/(?<!\/)\/+$/, '')}/console${path}`)
  link.search = new URLSearchParams(given).toString()
  if (code) link.hash = `code=${code}`
  else tell('Unless your browser is signed in already, sign in there with an API key.')
  if (!(await showInBrowser(link.href))) process.stdout.write(`${link.href}\n`)
}

/** A code that signs in to the console; undefined if this machine does not have the project. */
async function signInCode(url: string, project_id: string): Promise<string | undefined> {
  const { database_url, data_dir } = readConfig(process.env)
  const has_database = database_url !== undefined || existsSync(join(data_dir, 'postgres'))
  if (!has_database || !isOnThisMachine(url)) return undefined
  const { createSignInCode } = await import('annals/dist/console_api/sign_in.js')
  try {
    return await withDatabase((database) => createSignInCode(database, project_id))
  } catch (error) {
    if (error instanceof AnnalsError && error.error === 'project_not_found') return undefined
    throw error
  }
}

/** The program that opens a file as its user would; undefined without a display. */
export function openerOf(platform: NodeJS.Platform, env: NodeJS.ProcessEnv): string | undefined {
  if (platform === 'darwin') return 'open'
  if (platform === 'win32') return 'explorer'
  return env.DISPLAY || env.WAYLAND_DISPLAY ? 'xdg-open' : undefined
}

/** Returns whether there is a display. The link is in a file of the user's own: every user of the machine can read what a program is called with. */
export async function showInBrowser(link: string): Promise<boolean> {
  const program = openerOf(process.platform, process.env)
  if (program === undefined) return false
  const directory = await mkdtemp(join(tmpdir(), 'annals-console-'))
  try {
    const file = join(directory, 'console.html')
    await writeFile(file, `<meta http-equiv="refresh" content="0;url=${link}">`, { mode: 0o600 })
    const opener = spawn(program, [file], {
      stdio: 'ignore',
      detached: true,
    })
    opener.unref()
    const failed = new Promise<false>((resolve) => opener.once('error', () => resolve(false)))
    return await Promise.race([failed, sleep(READ_MS_MAX, true)])
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}
