import { hkdfSync } from 'node:crypto'
import type { Config } from '@annals/kits/configuration/config.js'
import { boundedFetch } from '@annals/kits/outgoing/bounded_fetch.js'
import type { Configuration, TokenEndpointResponse, TokenEndpointResponseHelpers } from 'openid-client'
import { ROLES, type Role } from '../projects/tokens/token.js'

export const CALLBACK_PATH = '/console/oidc/callback'

/** How far the issuer's clock and ours may be apart. */
const CLOCK_TOLERANCE_S = 30
const ANSWER_S_MAX = 10
const ANSWER_BYTES_MAX = 1024 * 1024
/** How long a person may take to sign in at the issuer. */
const SIGN_IN_TIME = '10m'
const GROUPS_MAX = 1_000

export type IssuerConfig = Pick<
  Config,
  | 'oidc_issuer'
  | 'oidc_client_id'
  | 'oidc_client_secret'
  | 'oidc_allowed_domains'
  | 'oidc_roles_claim'
  | 'public_url'
>

export class SignInRefused extends Error {
  constructor(
    readonly reason: 'refused' | 'address' | 'no_project',
    options?: { cause?: unknown },
  ) {
    super(reason, options)
  }
}

export interface Identity {
  issuer: string
  subject: string
  /** Verified by the issuer, in lower case. */
  email: string
  is_owner: boolean
  /** By the name or id of a project. */
  roles: ReadonlyMap<string, Role>
  /** With which the issuer is asked again; encrypted. */
  refresh_token: string | undefined
}

interface Begun {
  state: string
  nonce: string
  verifier: string
  /** The challenge of a command line for which somebody signs in. */
  login?: string | undefined
}

/** The issuer at which people sign in: OpenID Connect with a code, PKCE, and whatever it says signed and verified. */
export class Issuer {
  private discovered: Promise<Configuration> | undefined

  constructor(private readonly config: IssuerConfig) {}

  /** Where to send the browser, and what it must keep until it is back. `login`: comes back with it. */
  async begin(login?: string): Promise<{ url: string; kept: string }> {
    const oidc = await import('openid-client')
    const config = await this.configuration()
    const begun = {
      state: oidc.randomState(),
      nonce: oidc.randomNonce(),
      verifier: oidc.randomPKCECodeVerifier(),
    }
    const { scopes_supported = [] } = config.serverMetadata()
    const optional = ['offline_access', 'groups'].filter((scope) => scopes_supported.includes(scope))
    const url = oidc.buildAuthorizationUrl(config, {
      redirect_uri: `${this.config.public_url}${CALLBACK_PATH}`,
      scope: ['openid', 'email', ...optional].join(' '),
      state: begun.state,
      nonce: begun.nonce,
      code_challenge: await oidc.calculatePKCECodeChallenge(begun.verifier),
      code_challenge_method: 'S256',
    })
    return {
      url: url.href,
      kept: await this.seal('sign-in', { ...begun, ...(login && { login }) }, SIGN_IN_TIME),
    }
  }

  /** `query`: with which the browser came back; `kept`: what it kept. @throws SignInRefused */
  async finish(query: string, kept: string): Promise<{ identity: Identity; login: string | undefined }> {
    const oidc = await import('openid-client')
    const config = await this.configuration()
    try {
      const { state, nonce, verifier, login } = await this.open<Begun>('sign-in', kept)
      const url = new URL(`${this.config.public_url}${CALLBACK_PATH}${query}`)
      const tokens = await oidc.authorizationCodeGrant(config, url, {
        pkceCodeVerifier: verifier,
        expectedState: state,
        expectedNonce: nonce,
        idTokenExpected: true,
      })
      return { identity: await this.identityOf(config, tokens, undefined), login }
    } catch (cause) {
      throw cause instanceof SignInRefused ? cause : new SignInRefused('refused', { cause })
    }
  }

  /** Asks again about somebody. Undefined: the account is gone. @throws if the issuer does not answer */
  async askAgain({ subject, refresh_token }: { subject: string; refresh_token: string }) {
    const oidc = await import('openid-client')
    const config = await this.configuration()
    const { token } = await this.open<{ token: string }>('refresh', refresh_token)
    try {
      const tokens = await oidc.refreshTokenGrant(config, token)
      return await this.identityOf(config, tokens, { subject, token })
    } catch (error) {
      const isOver = error instanceof oidc.ResponseBodyError && error.error === 'invalid_grant'
      if (isOver || error instanceof SignInRefused) return undefined
      throw error
    }
  }

  /** Where somebody ends the session at the issuer as well. Undefined: it names no such place, or does not answer. */
  async endSessionUrl(): Promise<string | undefined> {
    const oidc = await import('openid-client')
    try {
      const config = await this.configuration()
      if (!config.serverMetadata().end_session_endpoint) return undefined
      const url = oidc.buildEndSessionUrl(config)
      return /^https?:$/.test(url.protocol) ? url.href : undefined
    } catch {
      return undefined
    }
  }

  private async identityOf(
    config: Configuration,
    tokens: TokenEndpointResponse & TokenEndpointResponseHelpers,
    before: { subject: string; token: string } | undefined,
  ): Promise<Identity> {
    const oidc = await import('openid-client')
    const told = tokens.claims()
    const subject = told?.sub ?? before?.subject
    if (subject === undefined || (before && subject !== before.subject)) throw new SignInRefused('refused')
    const more = config.serverMetadata().userinfo_endpoint
      ? await oidc.fetchUserInfo(config, tokens.access_token, subject)
      : {}
    const claims: Record<string, unknown> = { ...told, ...more }
    const { email, email_verified } = claims
    if (typeof email !== 'string' || email.length > 254 || email_verified !== true || !this.takes(email))
      throw new SignInRefused('address')
    const token = tokens.refresh_token ?? before?.token
    return {
      issuer: config.serverMetadata().issuer,
      subject,
      email: email.toLowerCase(),
      ...rolesOf(this.config.oidc_roles_claim === undefined ? [] : claims[this.config.oidc_roles_claim]),
      refresh_token: token === undefined ? undefined : await this.seal('refresh', { token }),
    }
  }

  private takes(email: string): boolean {
    const allowed = this.config.oidc_allowed_domains?.toLowerCase().split(',')
    return allowed === undefined || allowed.includes(email.toLowerCase().slice(email.lastIndexOf('@') + 1))
  }

  /**
   * Of the issuer. Each has no keys yet: they are read again at each sign-in, so that one that has been replaced is refused,
   * and a new one is known.
   */
  private async configuration(): Promise<Configuration> {
    const oidc = await import('openid-client')
    const { oidc_issuer, oidc_client_id, oidc_client_secret: secret } = this.config
    const issuer = new URL(oidc_issuer!)
    const insecure = issuer.protocol === 'http:' ? [oidc.allowInsecureRequests] : []
    const client = { client_secret: secret!, [oidc.clockTolerance]: CLOCK_TOLERANCE_S }
    const fetch = { [oidc.customFetch]: boundedFetch(ANSWER_BYTES_MAX) }
    const options = { execute: insecure, timeout: ANSWER_S_MAX, ...fetch }
    this.discovered ??= oidc
      .discovery(issuer, oidc_client_id!, client, undefined, options)
      .catch((error: unknown) => {
        this.discovered = undefined
        throw error
      })
    const metadata = (await this.discovered).serverMetadata()
    const { token_endpoint_auth_methods_supported: methods } = metadata
    const auth = methods?.includes('client_secret_post')
      ? oidc.ClientSecretPost(secret!)
      : oidc.ClientSecretBasic(secret!)
    const config = new oidc.Configuration(metadata, oidc_client_id!, client, auth)
    Object.assign(config, { timeout: ANSWER_S_MAX, ...fetch })
    if (insecure.length > 0) oidc.allowInsecureRequests(config)
    oidc.enableNonRepudiationChecks(config)
    return config
  }

  /** Encrypts what only the service may read. */
  private async seal(purpose: string, content: Record<string, string>, time?: string): Promise<string> {
    const { EncryptJWT } = await import('jose')
    const made = new EncryptJWT(content).setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
    return (time === undefined ? made : made.setExpirationTime(time)).encrypt(this.keyFor(purpose))
  }

  private async open<Content>(purpose: string, sealed: string): Promise<Content> {
    const { jwtDecrypt } = await import('jose')
    return (await jwtDecrypt(sealed, this.keyFor(purpose))).payload as Content
  }

  private keyFor(purpose: string): Uint8Array {
    return new Uint8Array(hkdfSync('sha256', this.config.oidc_client_secret!, '', `annals ${purpose}`, 32))
  }
}

const GROUP = /^annals:(.{1,200}):(\w{1,10})$/

/** The roles that groups give: `annals:<project>:<role>`, and `annals:owner`. */
function rolesOf(groups: unknown): Pick<Identity, 'is_owner' | 'roles'> {
  const roles = new Map<string, Role>()
  const names = (Array.isArray(groups) ? groups : [groups]).slice(0, GROUPS_MAX)
  for (const name of names) {
    const [, project = '', word] = (typeof name === 'string' && GROUP.exec(name)) || []
    const role = ROLES.find((known) => known === word)
    const before = roles.get(project)
    if (role && (before === undefined || ROLES.indexOf(role) < ROLES.indexOf(before)))
      roles.set(project, role)
  }
  return { is_owner: names.includes('annals:owner'), roles }
}
