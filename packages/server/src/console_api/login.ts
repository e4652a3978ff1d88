import { createHash, randomBytes } from 'node:crypto'
import { Name, Strict } from '@annals/kits/contract/schema.js'
import { AnnalsError } from '@annals/kits/errors.js'
import type { Kits } from '@annals/kits/module.js'
import type { Database } from '@annals/kits/postgres/database.js'
import type { FastifyRequest } from 'fastify'
import Type, { type Static } from '#typebox'
import { issueToken, storeToken } from '../projects/projects.js'
import { hashToken, SCOPES } from '../projects/tokens/token.js'
import { FORGET_EXPIRED_SIGN_INS, TAKE_LOGIN_CODE } from './console_queries.js'
import { nameOfProject } from './sign_in.js'

/**
 * How `annals login` gets a personal token, also over SSH. It invents a verifier and leads a browser, on any machine, to
 * /console/oidc/start with the digest of it, the challenge. Whoever signs in at the issuer is shown a code: it is pasted into
 * the terminal, or, where the browser is on the same machine, a link brings it to the port on which the command listens.
 * Nobody is sent there without a click: another user of the machine could have sent the address. Code and verifier
 * together are exchanged for a token, once: neither a code that somebody reads nor such an address is worth anything alone.
 */
const CODE_BYTES = 32
const CODE_MINUTES_MAX = 5
const TOKEN_DAYS = 90
const MINUTE_MS = 60_000
const CHALLENGE = /^[A-Za-z0-9_-]{43}$/
/** A challenge, and where the command listens on the machine of the browser: a port, and what it is to hear there. */
export const LOGIN = /^([A-Za-z0-9_-]{43})(?:\.([1-9]\d{3,4})\.([A-Za-z0-9_-]{43}))?$/

export const LoginBody = Strict({
  code: Type.String({ pattern: CHALLENGE.source }),
  verifier: Type.String({ pattern: CHALLENGE.source }),
  name: Name,
})

/** Stored instead of the code, as a hash: no console and no other command line knows the rest. */
const boundCode = (challenge: string, code: string) => `login:${challenge}:${code}`

export async function createLoginCode(
  database: Database,
  { member_id, project_id }: { member_id: string; project_id: string },
  login: string,
): Promise<string> {
  const challenge = LOGIN.exec(login)![1]!
  await database.query(FORGET_EXPIRED_SIGN_INS, [])
  const code = randomBytes(CODE_BYTES).toString('base64url')
  const expires_at = new Date(Date.now() + CODE_MINUTES_MAX * MINUTE_MS).toISOString()
  const request = { name: 'login code', scopes: [], expires_at, member_id }
  await storeToken(database, project_id, boundCode(challenge, code), request, 'sign_in_code')
  return code
}

export async function takeLoginCode(
  database: Kits['database'],
  { body, address }: Pick<FastifyRequest, 'address'> & { body: Static<typeof LoginBody> },
): Promise<string> {
  const challenge = createHash('sha256').update(body.verifier).digest('base64url')
  const hash = hashToken(boundCode(challenge, body.code))
  const [taken] = await database.of('sign_in').query(TAKE_LOGIN_CODE, [hash])
  if (!taken)
    throw new AnnalsError(
      'unauthorized',
      `This code has been used, is older than ${CODE_MINUTES_MAX} minutes, or was made for another \`annals login\`. Run it again.`,
    )
  const [project_id, member_id] = [taken.project_id!, taken.member_id!]
  const expires_at = new Date(Date.now() + TOKEN_DAYS * 86_400_000).toISOString()
  const request = { name: body.name, scopes: SCOPES, expires_at, member_id }
  const actor = `member ${member_id} by \`annals login\`, from ${address}`
  const json = await issueToken(database.of('operator'), actor, project_id, request)
  const project = await nameOfProject({ database: database.of('sign_in'), project_id })
  return `{"project":${JSON.stringify(project)},${json.slice(1)}`
}

const escaped = (text: string) => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`)

/** @param login as LOGIN says */
export function loginPage(
  email: string,
  codes: Array<[project: string, code: string]>,
  login: string,
): string {
  const [, , port, state] = LOGIN.exec(login)!
  const rows = codes.map(([project, code]) => `<dt>${escaped(project)}</dt><dd><code>${code}</code></dd>`)
  const links = codes.map(([project, code]) => {
    const link = `http://127.0.0.1:${port}/?code=${code}&amp;state=${state}`
    return `<li><a href="${link}">Sign in to ${escaped(project)}</a></li>`
  })
  const byLink = port ? `<ul>${links.join('')}</ul><p>If such a link leads nowhere, do it by hand.</p>` : ''
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Sign in the command line</title>
<h1>Sign in the command line</h1>
<p>You are ${escaped(email)}. If you did not run <code>annals login</code> just now, close this page: follow no link, and give no code to anybody. Whoever sent you here would act as you.</p>
${byLink}<p>Paste the code of a project into the terminal in which you ran <code>annals login</code>. It works there, once, within ${CODE_MINUTES_MAX} minutes.</p>
<dl>${rows.join('')}</dl>
</html>
`
}
