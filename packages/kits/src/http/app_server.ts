// Adds tags, operationId and hide to the types of schemas, here and for whoever imports this file.
/// <reference types="@fastify/swagger" preserve="true" />
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify'
import { StartError } from '../errors.js'
import type { Database } from '../postgres/database.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The caller's project: every query of the request is bound to it. */
    project_id: string
    readonly database: Database
    /** Whether the caller may still read what was asked for: long answers ask for it. */
    isStillAuthorized?(): Promise<boolean>
  }
}

export type AppServer = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>

/**
 * Backlog of connections to be accepted; the system may limit it further (net.core.somaxconn). One turn of the event
 * loop accepts one connection. If thousands arrive at the same moment, those beyond the backlog retry after seconds
 * and are dropped in the end. Node's default, 511, fills up quickly.
 */
const BACKLOG = 4_096
const SWEEP_MS = 50

export async function listen(app: AppServer, config: { host: string; port: number }): Promise<string> {
  try {
    return await app.listen({ host: config.host, port: config.port, backlog: BACKLOG })
  } catch (error) {
    throw explained(error, config)
  }
}

/** Listens there for a moment: what is wrong is known before anything is made. @throws StartError */
export async function refuseTakenPort(config: { host: string; port: number }): Promise<void> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(explained(error, config)))
    server.listen({ host: config.host, port: config.port }, () => server.close(() => resolve()))
  })
}

function explained(error: unknown, config: { host: string; port: number }): unknown {
  const { code } = error as { code?: string }
  if (code === 'EADDRINUSE') {
    return new StartError(
      `Port ${config.port} on ${config.host} is taken: another Annals or another program listens there. Stop it, or set PORT.`,
    )
  }
  if (code === 'EACCES')
    return new StartError(`This user may not listen on port ${config.port}. Set PORT to one above 1023.`)
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return new StartError(
      `HOST ${config.host} is not an address of this machine. Set HOST to one that is, such as 127.0.0.1.`,
    )
  }
  return error
}

/**
 * Serves on for so many ms and has each answer close its connection, so that whoever keeps connections open makes the
 * next one where a load balancer sends it, and has none left here when the listener closes.
 */
export async function turnAway(ms: number, app: AppServer): Promise<void> {
  app.server.prependListener('request', (_request, response) => response.setHeader('connection', 'close'))
  await sleep(ms)
}

/** Answers the accepted requests and closes; after the time limit, closes the remaining connections. */
export async function closeWithin(ms: number, app: AppServer): Promise<void> {
  const cut = setTimeout(() => app.server.closeAllConnections(), ms)
  // Closing ends connections that are idle at that moment; one that is kept alive after its last answer would be
  // waited for.
  const sweep = setInterval(() => app.server.closeIdleConnections(), SWEEP_MS)
  try {
    await app.close()
  } finally {
    clearTimeout(cut)
    clearInterval(sweep)
  }
}
