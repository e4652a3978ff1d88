import { randomBytes, randomInt } from 'node:crypto'
import { Name, Strict } from '@annals/kits/contract/schema.js'
import { AnnalsError } from '@annals/kits/errors.js'
import { answer } from '@annals/kits/http/answer/answer.js'
import { escaped, sendPage } from '@annals/kits/http/answer/html_page.js'
import type { AppServer } from '@annals/kits/http/app_server.js'
import { readFields } from '@annals/kits/http/request/read_form.js'
import type { Kits } from '@annals/kits/module.js'
import type { Database } from '@annals/kits/postgres/database.js'
import type { FastifyReply, FastifyRequest } from 'fastify'
import Type, { type Static } from '#typebox'
import { hashToken } from '../projects/tokens/token.js'
import * as devices from './device_queries.js'
import { LOGIN_BYTES_MAX, type ProjectCodes, SECRET, takeLoginCode, tokenFor } from './login.js'

/**
 * How `annals login` gets a personal token where there is no browser (RFC 8628). It shows a short code, which somebody opens
 * in a browser on any machine, signs in, sees who asks, and approves or refuses. The command meanwhile asks again and
 * again, with a secret of its own. Everything is in the database: the two may meet different nodes.
 */
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ'
const USER_CODE = /^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/
const INTERVAL_S = 5

const DeviceBody = Strict({ name: Name })
const PollBody = Strict({ device_code: Type.String({ pattern: SECRET }) })
const DecisionBody = Strict({
  user_code: Type.String({ pattern: USER_CODE.source }),
  ticket: Type.String({ pattern: SECRET }),
  decision: Type.Enum(['approve', 'refuse']),
})
type Asked<Body> = Pick<FastifyRequest, 'address'> & { body: Body }

/** The code in an address that somebody may have typed; undefined: there is none. */
export function userCodeIn(login: string): string | undefined {
  return USER_CODE.exec(login.toUpperCase())?.[0]
}

/** @throws AnnalsError overloaded */
async function begin(database: Database, { body: { name }, address }: Asked<Static<typeof DeviceBody>>) {
  await database.query(devices.FORGET_DEVICES, [])
  const letters = () => Array.from({ length: 4 }, () => LETTERS[randomInt(LETTERS.length)]).join('')
  const user_code = `${letters()}-${letters()}`
  const device_code = randomBytes(32).toString('base64url')
  const hash = hashToken(device_code)
  const [added] = await database.query(devices.ADD_DEVICE, [user_code, hash, name, address])
  if (!added)
    throw new AnnalsError('overloaded', 'Too many command lines wait already. Try again in 10 minutes.')
  const expires_in_s = devices.DEVICE_MINUTES_MAX * 60
  return JSON.stringify({ device_code, user_code, interval_s: INTERVAL_S, expires_in_s })
}

/** The token once it is approved; until then, how to go on. @throws AnnalsError unauthorized, if it never will be */
async function pollDevice(databases: Kits['database'], { body, address }: Asked<Static<typeof PollBody>>) {
  const database = databases.of('sign_in')
  const hash = hashToken(body.device_code)
  const [taken] = await database.query(devices.TAKE_DEVICE, [hash])
  if (taken) {
    const { member_id, project_id, name } = taken
    if (!member_id) throw new AnnalsError('unauthorized', 'The sign-in was refused in the browser.')
    return tokenFor(databases, { member_id, project_id: project_id! }, name!, address)
  }
  const [polled] = await database.query(devices.POLL_DEVICE, [hash])
  if (polled) return JSON.stringify({ status: polled.is_early === 't' ? 'slow_down' : 'pending' })
  throw new AnnalsError('unauthorized', 'This sign-in has expired or was used. Run `annals login` again.')
}

const NOT_WAITING = [
  'Nobody waits for this code',
  `<p>It was mistyped, is older than ${devices.DEVICE_MINUTES_MAX} minutes, or has been answered. Run <code>annals login</code> again.</p>`,
] as const

/**
 * Asks somebody who signed in to decide. `tickets`: for each project, without which nothing is decided: pages of others do
 * not know them. @throws AnnalsError rate_limited
 */
export async function askAboutDevice(
  reply: FastifyReply,
  database: Database,
  { person_id, email, user_code }: { person_id: string; email: string; user_code: string },
  tickets: ProjectCodes,
): Promise<FastifyReply> {
  const [row] = await database.query(devices.COUNT_LOOK, [person_id])
  if (row?.is_over === 't')
    throw new AnnalsError('rate_limited', 'You looked at too many codes. Try again in some minutes.')
  const [device] = await database.query(devices.FIND_DEVICE, [user_code])
  if (!device) return sendPage(reply, ...NOT_WAITING)
  const form = (decision: string, ticket: string, label: string) =>
    `<form method="post" action="/console/oidc/device/decision"><input type="hidden" name="user_code" value="${user_code}"><input type="hidden" name="ticket" value="${ticket}"><button name="decision" value="${decision}">${label}</button></form>`
  const forms = tickets.map(([project, ticket]) => form('approve', ticket, `Approve for ${escaped(project)}`))
  return sendPage(
    reply,
    'Approve a command line?',
    `<p>You are ${escaped(email)}. A command line asks to act as you:</p>
<dl><dt>Code</dt><dd><strong>${user_code}</strong></dd><dt>Name</dt><dd>${escaped(device.name!)}</dd><dt>Address</dt><dd>${escaped(device.address!)}</dd></dl>
<p>Approve only if you ran <code>annals login</code> yourself and your terminal shows this code. If somebody sent you the address or the code, refuse: whoever did would act as you.</p>
${forms.join('\n')}
${form('refuse', tickets[0]![1], 'Refuse')}`,
  )
}

/** @throws AnnalsError unauthorized, for a ticket that is none */
async function decide(reply: FastifyReply, database: Database, body: Static<typeof DecisionBody>) {
  const { user_code, ticket, decision } = body
  const { member_id, project_id } = await takeLoginCode(database, user_code, ticket)
  const isApproved = decision === 'approve'
  const by = isApproved ? [member_id, project_id] : [null, null]
  const [decided] = await database.query(devices.DECIDE_DEVICE, [user_code, ...by])
  if (!decided) return sendPage(reply, ...NOT_WAITING)
  const title = `The command line ${isApproved ? 'is signed in' : 'was refused, and gets nothing'}`
  return sendPage(reply, title, '<p>You can close this page.</p>')
}

/** The command line's half, and the buttons of the page, which has no script. No cookie counts here. */
export function deviceRoutes(app: AppServer, { database }: Pick<Kits, 'database'>): void {
  const optionsFor = <Body>(body: Body) => ({ bodyLimit: LOGIN_BYTES_MAX, schema: { hide: true, body } })
  app.post('/console/oidc/device', optionsFor(DeviceBody), async (request, reply) =>
    answer(reply, await begin(database.of('sign_in'), request)),
  )
  app.post('/console/oidc/device/token', optionsFor(PollBody), async (request, reply) =>
    answer(reply, await pollDevice(database, request)),
  )
  void app.register(async (scope: AppServer) => {
    readFields(scope)
    scope.post('/console/oidc/device/decision', optionsFor(DecisionBody), async (request, reply) =>
      decide(reply, database.of('sign_in'), request.body),
    )
  })
}
