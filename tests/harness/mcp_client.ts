import {
  Client,
  StreamableHTTPClientTransport,
  type VersionNegotiationMode,
} from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { afterEach, expect } from 'vitest'
import { ANNALS_BIN } from './annals_process.ts'

export const PROTOCOLS = [
  { version: '2026-07-28', mode: { pin: '2026-07-28' } },
  { version: '2025-11-25', mode: 'legacy' },
] as const
export const TRANSPORTS = ['stdio', 'Streamable HTTP'] as const
export type McpTransport = (typeof TRANSPORTS)[number]

/** The official client of the Model Context Protocol, connected to a service. */
export interface McpClient {
  readonly client: Client
  /** The text of a tool's answer, and whether the tool refused. */
  call(name: string, asked: object): Promise<{ text: string; refused: boolean }>
  /** The JSON of a tool's answer, which must be none of a refusal. */
  value<T = Record<string, unknown>>(name: string, asked: object): Promise<T>
}

const open: Client[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((client) => client.close()))
})

/** Connects a client, which is closed behind the test. */
export async function connectMcp(
  url: string,
  token: string,
  transport: McpTransport = 'Streamable HTTP',
  mode: VersionNegotiationMode = 'auto',
): Promise<McpClient> {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
  open.push(client)
  await client.connect(transport === 'stdio' ? overStdio(url, token) : overHttp(url, token))
  const call: McpClient['call'] = async (name, asked) => {
    const { content, isError } = await client.callTool({ name, arguments: { ...asked } })
    const [first] = content
    if (first?.type !== 'text') throw new Error(`${name} answered no text`)
    return { text: first.text, refused: isError === true }
  }
  return {
    client,
    call,
    value: async <T>(name: string, asked: object) => {
      const { text, refused } = await call(name, asked)
      expect(refused, text).toBe(false)
      return JSON.parse(text) as T
    },
  }
}

function overHttp(url: string, token: string): StreamableHTTPClientTransport {
  const headers = { authorization: `Bearer ${token}` }
  return new StreamableHTTPClientTransport(new URL('/mcp', url), { requestInit: { headers } })
}

function overStdio(url: string, token: string): StdioClientTransport {
  const { PATH = '', HOME = '/' } = process.env
  const env = { PATH, HOME, ANNALS_URL: url, ANNALS_API_KEY: token }
  return new StdioClientTransport({
    command: process.execPath,
    args: [ANNALS_BIN, 'mcp'],
    env,
    stderr: 'ignore',
  })
}
