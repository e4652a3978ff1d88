import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, inject } from 'vitest'
import { ADMIN_TOKEN, type AnnalsServer, expectOrderlyEnds, startServer } from './annals_process.ts'
import { type ApiClient, apiClient } from './api_client.ts'
import { expectOk } from './expectations.ts'
import { type HttpClient, httpClient } from './http_client.ts'
import { createTestDatabase, type TestDatabase } from './test_database.ts'

export { expectOrderlyEnds }

export interface Project {
  id: string
  name: string
  token: string
}

/** Where a node of the service is reached. */
export interface NodeAddress {
  url: string
}

/** A database with at least one node on it. */
export interface Service<Node extends NodeAddress = NodeAddress> {
  readonly databaseUrl: string
  /** The first node. */
  readonly node: Node
  /** Another node, which ends with the file. */
  startNode(env?: Record<string, string>): Promise<AnnalsServer>
  newProject(): Promise<Project>
  /** A client of a new project, or of the given token, at the first node or the given one. */
  newClient(options?: { token?: string; node?: NodeAddress }): Promise<ApiClient>
  /** A client without the API's typed methods: no token, or any token at all. */
  rawClient(token?: string, node?: NodeAddress): HttpClient
  /** A client of the admin API. */
  adminClient(node?: NodeAddress): HttpClient
}

/** Two nodes with default settings on one database, which all files of the run use: nobody stops them or looks at their logs. */
export interface SharedService extends Service {
  readonly secondNode: NodeAddress
}

/**
 * A service of the calling file's own, for tests that stop nodes, set the environment, read logs or metrics, or change
 * rows that others could meet. Everything goes with the file.
 */
export function useService(env: Record<string, string> = {}): Service<AnnalsServer> {
  let database: TestDatabase | undefined
  let first: AnnalsServer | undefined
  const service = serviceOn(
    () => database!.url,
    () => first!,
    env,
  )
  beforeAll(async () => {
    database = await createTestDatabase()
    first = await service.startNode()
  })
  afterAll(async () => {
    await service.end()
    await database?.drop()
  })
  return service
}

/** The run's own service, which is there already: for tests that stay within projects of their own. */
export function useSharedService(): SharedService {
  const { databaseUrl, urls } = inject('sharedService')
  const [node, secondNode] = urls.map((url) => ({ url }))
  const service = serviceOn(
    () => databaseUrl,
    () => node!,
  )
  afterAll(() => service.end())
  return Object.assign(service, { secondNode: secondNode! })
}

function serviceOn<Node extends NodeAddress>(
  databaseUrl: () => string,
  firstNode: () => Node,
  env: Record<string, string> = {},
): Service<Node> & { end(): Promise<void> } {
  const nodes: AnnalsServer[] = []
  const clients: HttpClient[] = []
  const keep = <C extends HttpClient>(client: C): C => {
    clients.push(client)
    return client
  }
  const service: Service<Node> & { end(): Promise<void> } = {
    get databaseUrl() {
      return databaseUrl()
    },
    get node() {
      return firstNode()
    },
    startNode: async (nodeEnv: Record<string, string> = {}) => {
      const node = await startServer({ DATABASE_URL: databaseUrl(), ...env, ...nodeEnv })
      nodes.push(node)
      return node
    },
    newProject: () => createProject(service.adminClient()),
    newClient: async ({ token, node = service.node } = {}) =>
      keep(apiClient(node.url, token ?? (await service.newProject()).token)),
    rawClient: (token, node = service.node) => keep(httpClient(node.url, token)),
    adminClient: (node = service.node) => keep(httpClient(node.url, ADMIN_TOKEN)),
    end: async () => {
      for (const client of clients) client.close()
      expectOrderlyEnds(await Promise.all(nodes.map((node) => node.stop())))
    },
  }
  return service
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
