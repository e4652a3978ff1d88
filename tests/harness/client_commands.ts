import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import type { Finished } from './annals_process.ts'
import type { ApiClient } from './api_client.ts'
import { runCommand } from './command_process.ts'
import { expectOk } from './expectations.ts'
import type { Service } from './service.ts'

/** The commands that are clients of a service, in a project of their own and with a home directory of their own. */
export interface ClientCommands {
  readonly token: string
  readonly api: ApiClient
  /** Where a test may keep files, and the commands keep their profiles. */
  readonly directory: string
  /** What tells a command which service it talks to, and with which token. */
  readonly env: Record<string, string>
  /** Runs a command to its end, with `more` variables besides `env`. */
  annals(args: string[], more?: Record<string, string>, input?: string): Promise<Finished>
  /** What a command printed, one JSON value a line; it must have succeeded. */
  values<T = Record<string, unknown>>(...args: string[]): Promise<T[]>
  /** Makes a session, and gives its id. */
  newSession(body?: object): Promise<string>
}

/** Registers the hooks that make a project and a directory before, and remove the directory after, a file's tests. */
export function useClientCommands(service: Service): ClientCommands {
  let directory: string
  let token: string
  let api: ApiClient
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'annals-commands-'))
    token = (await service.newProject()).token
    api = await service.newClient({ token })
  })
  afterAll(() => rm(directory, { recursive: true, force: true }))
  const commands: ClientCommands = {
    get token() {
      return token
    },
    get api() {
      return api
    },
    get directory() {
      return directory
    },
    get env() {
      return { ANNALS_URL: service.node.url, ANNALS_TOKEN: token, XDG_CONFIG_HOME: directory, TZ: 'UTC' }
    },
    annals: (args, more = {}, input) => runCommand(args, { ...commands.env, ...more }, input),
    values: async <T>(...args: string[]) => {
      const { code, stdout, stderr } = await commands.annals(args)
      expect(code, stderr).toBe(0)
      return stdout === '' ? [] : stdout.split('\n').map((line) => JSON.parse(line) as T)
    },
    newSession: async (body = {}) => expectOk(await api.createSession(body), 201).id,
  }
  return commands
}
