import { type Annals, AnnalsError } from '@annals/client'
import { writeJson } from '@annals/messages/json'
import { type McpServer, ResourceNotFoundError, ResourceTemplate } from '@modelcontextprotocol/server'
import { readSession } from './session_tools.js'

const SESSIONS_LISTED = 20
const ENTRIES_SHOWN = 50
const JSON_TYPE = 'application/json'

/** Sessions as resources: `annals://session/{id}` is how a session ends. */
export function addSessionResources(server: McpServer, annals: Annals): void {
  const listed = async () => {
    const page = await annals.sessions.list({ time_desc: true, limit: SESSIONS_LISTED }).page()
    const resources = page.items.map(({ id, created_at }) => ({
      uri: `annals://session/${id}`,
      name: `Session of ${created_at}`,
      mimeType: JSON_TYPE,
    }))
    return { resources }
  }
  server.registerResource(
    'session',
    new ResourceTemplate('annals://session/{id}', { list: listed }),
    {
      title: 'Session',
      description: `The newest ${ENTRIES_SHOWN} entries of a session`,
      mimeType: JSON_TYPE,
    },
    async ({ href }, { id }) => {
      const asked = { session_id: String(id), last: ENTRIES_SHOWN, limit: 1 }
      const session = await found(href, () => readSession(annals, asked))
      return { contents: [{ uri: href, mimeType: JSON_TYPE, text: writeJson(session) }] }
    },
  )
}

/** What does not exist, is another project's, or could not exist looks the same. */
async function found<T>(uri: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    const is_unknown = error instanceof AnnalsError && (error.status === 404 || error.status === 400)
    throw is_unknown ? new ResourceNotFoundError(uri) : error
  }
}
