import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll } from 'vitest'
import { ADMIN_TOKEN, type AnnalsServer, type Finished, startServer } from './annals_process.ts'
import { type ApiClient, apiClient } from './api_client.ts'
import { expectOk } from './expectations.ts'
import { type HttpClient, httpClient } from './http_client.ts'
import { createTestDatabase, type TestDatabase } from './test_database.ts'

export interface Project {
  id: string
  name: string
  token: string
}

/** A database and at least one node on it, for the tests of one file. Everything goes with the file. */
export interface Service {
  readonly databaseUrl: string
  /** The first node. */
  readonly node: AnnalsServer
  startNode(env?: Record<string, string>): Promise<AnnalsServer>
  newProject(): Promise<Project>
  /** A client of a new project, or of the given token, at the first node or the given one. */
  newClient(options?: { token?: string; node?: AnnalsServer }): Promise<ApiClient>
  /** A client without the API's typed methods: no token, or any token at all. */
  rawClient(token?: string, node?: AnnalsServer): HttpClient
  /** A client of the admin API. */
  adminClient(node?: AnnalsServer): HttpClient
}

/** Registers the hooks that start and end a service around the tests of the calling file. */
export function useService(env: Record<string, string> = {}): Service {
  const nodes: AnnalsServer[] = []
  const clients: HttpClient[] = []
  let database: TestDatabase | undefined
  const keep = <C extends HttpClient>(client: C): C => {
    clients.push(client)
    return client
  }
  const service: Service = {
    get databaseUrl() {
      return database!.url
    },
    get node() {
      return nodes[0]!
    },
    startNode: async (nodeEnv = {}) => {
      const node = await startServer({ DATABASE_URL: database!.url, ...env, ...nodeEnv })
      nodes.push(node)
      return node
    },
    newProject: () => createProject(service.adminClient()),
    newClient: async ({ token, node = service.node } = {}) =>
      keep(apiClient(node.url, token ?? (await service.newProject()).token)),
    rawClient: (token, node = service.node) => keep(httpClient(node.url, token)),
    adminClient: (node = service.node) => keep(httpClient(node.url, ADMIN_TOKEN)),
  }
  beforeAll(async () => {
    database = await createTestDatabase()
    await service.startNode()
  })
  afterAll(async () => {
    for (const client of clients) client.close()
    const ends = await Promise.all(nodes.map((node) => node.stop()))
    await database?.drop()
    expectOrderlyEnds(ends)
  })
  return service
}

/** A node ends because it was stopped, with code 0, or because a test killed it; none falls over. */
export function expectOrderlyEnds(ends: Finished[]): void {
  for (const { code, signal, stderr } of ends) {
    if (code !== 0 && signal !== 'SIGKILL') {
      throw new Error(`A node ended with ${code ?? signal}:\n${stderr.split('\n').slice(-20).join('\n')}`)
    }
  }
}

/** A project with a name that no other has, made through the admin API. */
export async function createProject(admin: HttpClient): Promise<Project> {
  const name = `project-${randomBytes(8).toString('hex')}`
  const answer = await admin.request<{ project: { id: string }; token: string }>(
    'POST',
    '/admin/v1/projects',
    {
      body: { name },
    },
  )
  const { project, token } = expectOk(answer, 201)
  return { id: project.id, name, token }
}
