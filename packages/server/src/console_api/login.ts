import { createHash, randomBytes } from 'node:crypto'
import { Name, Strict } from '@annals/kits/contract/schema.js'
import { AnnalsError } from '@annals/kits/errors.js'
import { answer } from '@annals/kits/http/answer/answer.js'
import { escaped, sendPage } from '@annals/kits/http/answer/html_page.js'
import type { AppServer } from '@annals/kits/http/app_server.js'
import type { Kits } from '@annals/kits/module.js'
import type { Database } from '@annals/kits/postgres/database.js'
import type { FastifyReply } from 'fastify'
import Type from '#typebox'
import type { Memberships } from '../people/sign_ins.js'
import { issueToken, storeToken } from '../projects/projects.js'
import { hashToken, SCOPES } from '../projects/tokens/token.js'
import { FORGET_EXPIRED_SIGN_INS, TAKE_SIGN_IN_CODE } from './console_queries.js'
import { minutesFromNow, nameOfProject } from './sign_in.js'

/**
 * How `annals login` gets a personal token from a browser on the same machine. It leads the browser to /console/oidc/start with
 * the digest of a verifier, the challenge. Whoever signs in is shown a link that brings a code to the port on which the
 * command listens: by a click, since another user of the machine could have sent the address. Code and verifier together
 * are exchanged for a token, once: neither is worth anything alone. Without a browser there: see device_login.ts.
 */
const CODE_BYTES = 32
export const LOGIN_BYTES_MAX = 1_024
const CODE_MINUTES_MAX = 5
const TOKEN_DAYS = 90
export const SECRET = '^[A-Za-z0-9_-]{43}$'
/** A challenge, and where the command listens on the machine of the browser: a port, and what it is to hear there. */
export const LOGIN = /^([A-Za-z0-9_-]{43})\.([1-9]\d{3,4})\.([A-Za-z0-9_-]{43})$/

const LoginBody = Strict({
  code: Type.String({ pattern: SECRET }),
  verifier: Type.String({ pattern: SECRET }),
  name: Name,
})

type Member = Memberships['members'][number]

/** Stored instead of the code, as a hash: no console and no other command line knows the rest. */
const boundCode = (challenge: string, code: string) => `login:${challenge}:${code}`

/** Each for one project, of which the person is a member. */
export async function createLoginCode(
  database: Database,
  { member_id, project_id }: Member,
  challenge: string,
): Promise<string> {
  await database.query(FORGET_EXPIRED_SIGN_INS, [])
  const code = randomBytes(CODE_BYTES).toString('base64url')
  const request = { name: 'login code', scopes: [], expires_at: minutesFromNow(CODE_MINUTES_MAX), member_id }
  await storeToken(database, project_id, boundCode(challenge, code), request, 'sign_in_code')
  return code
}

/** @throws AnnalsError unauthorized */
export async function takeLoginCode(database: Database, challenge: string, code: string): Promise<Member> {
  const [taken] = await database.query(TAKE_SIGN_IN_CODE, [hashToken(boundCode(challenge, code)), true])
  if (taken) return { project_id: taken.project_id!, member_id: taken.member_id! }
  throw new AnnalsError(
    'unauthorized',
    `This code has been used, is older than ${CODE_MINUTES_MAX} minutes, or was made for another \`annals login\`. Run it again.`,
  )
}

/** The command line's half: no cookie counts here, only a code with the verifier of who asked for it. */
export function loginRoute(app: AppServer, { database }: Pick<Kits, 'database'>): void {
  const options = { bodyLimit: LOGIN_BYTES_MAX, schema: { hide: true, body: LoginBody } }
  app.post('/console/oidc/login', options, async ({ body, address }, reply) => {
    const challenge = createHash('sha256').update(body.verifier).digest('base64url')
    const member = await takeLoginCode(database.of('sign_in'), challenge, body.code)
    return answer(reply, await tokenFor(database, member, body.name, address))
  })
}

/** A personal token for a command line, as JSON. */
export async function tokenFor(
  database: Kits['database'],
  { project_id, member_id }: Member,
  name: string,
  address: string,
): Promise<string> {
  const request = { name, scopes: SCOPES, expires_at: minutesFromNow(TOKEN_DAYS * 1_440), member_id }
  const actor = `member ${member_id} by \`annals login\`, from ${address}`
  const json = await issueToken(database.of('operator'), actor, project_id, request)
  const project = await nameOfProject({ database: database.of('sign_in'), project_id })
  return `{"project":${JSON.stringify(project)},${json.slice(1)}`
}

/** Codes by the names of their projects. */
export type ProjectCodes = Array<[project: string, code: string]>

/** @param login as LOGIN says */
export function sendLinks(
  reply: FastifyReply,
  email: string,
  codes: ProjectCodes,
  login: string,
): FastifyReply {
  const [, , port, state] = LOGIN.exec(login)!
  const links = codes.map(([project, code]) => {
    const link = `http://127.0.0.1:${port}/?code=${code}&amp;state=${state}`
    return `<li><a href="${link}">Sign in to ${escaped(project)}</a></li>`
  })
  return sendPage(
    reply,
    'Sign in the command line',
    `<p>You are ${escaped(email)}. If you did not run <code>annals login</code> just now, close this page and follow no link: whoever sent you here would act as you.</p>
<ul>${links.join('')}</ul>
<p>The links work once, within ${CODE_MINUTES_MAX} minutes. If they lead nowhere, the command runs on another machine: run <code>annals login --no-browser</code> there.</p>`,
  )
}
