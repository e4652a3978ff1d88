import { type Annals, AnnalsError } from '@annals/client'
import { visibleJson, writeJson } from '@annals/messages/json'
import { type McpServer, ResourceNotFoundError, ResourceTemplate } from '@modelcontextprotocol/server'
import { readSession } from './session_tools.js'
import { ANSWER_LENGTH_MAX, shortened } from './shortened.js'

const LISTED = { time_desc: true, limit: 20 }
const SHOWN = 50

interface Kind {
  kind: string
  description: string
  mimeType: string
  list: () => Promise<Array<{ id: string; name?: string }>>
  read: (id: string) => Promise<string>
}

/** The newest sessions and skills as resources: how a session ends, and what SKILL.md says. */
export function addResources(server: McpServer, annals: Annals): void {
  addResource(server, {
    kind: 'session',
    description: `The newest ${SHOWN} entries of a session`,
    mimeType: 'application/json',
    list: async () => (await annals.sessions.list(LISTED).page()).items,
    read: async (session_id) =>
      visibleJson(writeJson(await readSession(annals, { session_id, last: SHOWN, limit: 1 }))),
  })
  addResource(server, {
    kind: 'skill',
    description: 'SKILL.md of a skill, be it written or learnt',
    mimeType: 'text/markdown',
    list: async () => (await annals.skills.list(LISTED).page()).items,
    read: async (id) => shortened((await annals.skills.file(id, 'SKILL.md')).content!.raw, ANSWER_LENGTH_MAX),
  })
}

function addResource(server: McpServer, { kind, description, mimeType, list, read }: Kind): void {
  const listed = async () => ({
    resources: (await list()).map(({ id, name = `${kind} ${id}` }) => ({
      uri: `annals://${kind}/${id}`,
      // Also shown where no JSON is: a list of resources.
      name: visibleJson(name),
      mimeType,
    })),
  })
  const template = new ResourceTemplate(`annals://${kind}/{id}`, { list: listed })
  server.registerResource(kind, template, { description, mimeType }, async ({ href }, { id }) => {
    const text = await read(String(id)).catch((error) => {
      // What does not exist, is another project's, or could not exist looks the same.
      const is_unknown = error instanceof AnnalsError && (error.status === 404 || error.status === 400)
      throw is_unknown ? new ResourceNotFoundError(href) : error
    })
    return { contents: [{ uri: href, mimeType, text }] }
  })
}
