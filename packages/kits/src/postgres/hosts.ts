import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { StartError } from '../errors.js'

/**
 * URLs as libpq reads them, beyond what the driver does: several hosts, as `h1:p1,h2:p2` or `?host=h1,h2&port=p1,p2`, with
 * `target_session_attrs`, and `sslmode=require`, which encrypts and verifies nothing unless `sslrootcert` names who signed.
 */

/** The parts of a URL: scheme, user and password with `@`, hosts, database with `/`, parameters with `?`. */
const PARTS = /^(postgres(?:ql)?:\/\/)([^/?#]*@)?([^/?#@]*)(\/[^?#]*)?(\?[^#]*)?$/
const HOST_AND_PORT = /^(\[[^\]]*\]|[^:]*)(?::(\d*))?$/
/** Which servers `target_session_attrs` may ask for: Annals writes. */
const ATTRIBUTES: Record<string, { must_write: boolean }> = {
  any: { must_write: false },
  'read-write': { must_write: true },
  primary: { must_write: true },
}
/** How long a host that does not answer is waited for when one after it has answered. */
const PATIENCE_MS = 1_000
const CONNECT_MS_MAX = 5_000
const DEFAULT_PORT = 5_432

interface Host {
  host: string
  port: number
}

/** A URL for the driver, with the first host, and all hosts if there is a choice. */
export interface HostedUrl {
  connectionString: string
  /** Settings that the URL asks for, which the driver would let go before ours. */
  options?: string | undefined
  hosts?: Hosts
}

/** @throws StartError with a reason, which quotes nothing of the URL but hosts and attributes */
export function readDatabaseUrl(text: string): HostedUrl {
  const [, scheme, user = '', authority = '', database = '', search = ''] = PARTS.exec(text) ?? []
  // The driver's error says what is wrong.
  if (scheme === undefined) return { connectionString: text }
  const parameters = new URLSearchParams(search)
  const take = (name: string) => {
    const value = parameters.get(name)
    parameters.delete(name)
    return value ?? undefined
  }
  const attributes = take('target_session_attrs') ?? 'any'
  const hosts = readHosts(take('host'), take('port'), authority)
  const wanted = Object.hasOwn(ATTRIBUTES, attributes) ? ATTRIBUTES[attributes]! : undefined
  if (!wanted)
    throw new StartError(
      `target_session_attrs=${attributes} cannot be used, because Annals writes: use read-write or primary`,
    )
  const options = take('options')
  take('load_balance_hosts')
  if (parameters.has('sslmode') && !parameters.has('uselibpqcompat')) parameters.set('uselibpqcompat', 'true')
  // The driver takes it for a file; without it, Node's own list is used.
  if (parameters.get('sslrootcert') === 'system') take('sslrootcert')
  const [first] = hosts
  const isSocket = first?.host.startsWith('/')
  if (isSocket) {
    parameters.set('host', first!.host)
    parameters.set('port', String(first!.port))
  }
  const host = first?.host.includes(':') ? `[${first.host}]` : first?.host
  const address = !first || isSocket ? '' : `${host}:${first.port}`
  const rest = parameters.size > 0 ? `?${parameters.toString().replaceAll('+', '%20')}` : ''
  const connectionString = `${scheme}${user}${address}${database || '/'}${rest}`
  if (hosts.length < 2 && !wanted.must_write) return { connectionString, options }
  return { connectionString, options, hosts: new Hosts(connectionString, hosts, wanted.must_write) }
}

function readHosts(host: string | undefined, port: string | undefined, authority: string): Host[] {
  const named = host ? host.split(',').map((name) => ({ name, port: undefined })) : readAuthority(authority)
  const ports = port?.split(',') ?? []
  if (ports.length > 1 && ports.length !== named.length)
    throw new StartError(`there are ${ports.length} ports for ${named.length} hosts`)
  return named.map(({ name, port: own }, index) => ({
    host: name || 'localhost',
    port: Number(own || ports[index] || ports[0] || process.env.PGPORT || DEFAULT_PORT),
  }))
}

function readAuthority(authority: string) {
  if (authority === '') return process.env.PGHOST ? [{ name: process.env.PGHOST, port: undefined }] : []
  return authority.split(',').map((text) => {
    const [, name, port] = HOST_AND_PORT.exec(text) ?? []
    // It may be a part of a password.
    if (name === undefined) throw new StartError('Invalid URL')
    return { name: decodeURIComponent(name).replace(/^\[(.*)\]$/, '$1'), port }
  })
}

/**
 * Alternative hosts: one is used.
 *
 *   unknown ── choose ──▶ chosen ── it is away, or can only be read ──▶ unknown
 */
export class Hosts {
  private chosen: Promise<Host> | undefined

  constructor(
    private readonly connectionString: string,
    private readonly all: readonly Host[],
    /** A host that can only be read is passed over. */
    readonly must_write: boolean,
  ) {}

  /** The first that answers, and, if it must, can be written. @throws with all hosts and their reasons */
  choose(): Promise<Host> {
    this.chosen ??= this.find().catch((error) => {
      this.chosen = undefined
      throw error
    })
    return this.chosen
  }

  /** Has the next connection look again. */
  forget(): void {
    this.chosen = undefined
  }

  toString(): string {
    return this.all.map(({ host, port }) => `${host}:${port}`).join(',')
  }

  private async find(): Promise<Host> {
    const answers = this.all.map((host) => this.reasonAgainst(host))
    const patience = sleep(PATIENCE_MS, 'it does not answer', { ref: false })
    for (const [index, answer] of answers.entries())
      if ((await Promise.race([answer, patience])) === undefined) return this.all[index]!
    const reasons = await Promise.all(answers)
    const found = reasons.indexOf(undefined)
    if (found >= 0) return this.all[found]!
    const words = this.all.map(({ host, port }, index) => `${host}:${port}: ${reasons[index]}`)
    throw Object.assign(new Error(words.join('; ')), { code: 'EHOSTDOWN' })
  }

  private async reasonAgainst({ host, port }: Host): Promise<string | undefined> {
    const client = new pg.Client({
      connectionString: this.connectionString,
      application_name: 'annals',
      connectionTimeoutMillis: CONNECT_MS_MAX,
      query_timeout: CONNECT_MS_MAX,
    })
    client.on('error', () => {})
    Object.assign(client, { host, port })
    try {
      await client.connect()
      return this.must_write && (await isReadOnly(client)) ? 'it can only be read' : undefined
    } catch (error) {
      const { message, code } = error as Error & { code?: string }
      return message || code || 'no connection'
    } finally {
      void client.end().catch(() => {})
    }
  }
}

/** The driver's client, which connects to the chosen one of several hosts. */
export class HostedClient extends pg.Client {
  private readonly hosts: Hosts | undefined

  constructor(config: pg.ClientConfig & { hosts?: Hosts | undefined }) {
    super(config)
    this.hosts = config.hosts
    // A connection in use reports its end to its statement. Any other error, even one that comes with the end of the
    // handshake, would end the process if nobody listened.
    this.on('error', () => {})
  }

  override connect(): Promise<pg.Client>
  override connect(callback: (error: Error) => void): void
  override connect(callback?: (error: Error) => void): Promise<pg.Client> | undefined {
    const connected = this.hosts ? this.connectToOneOf(this.hosts) : super.connect()
    if (!callback) return connected as Promise<pg.Client>
    connected.then(() => callback(null as unknown as Error), callback)
    return undefined
  }

  private async connectToOneOf(hosts: Hosts): Promise<void> {
    Object.assign(this, await hosts.choose())
    try {
      await super.connect()
      if (hosts.must_write && (await isReadOnly(this))) throw new Error('this host can only be read')
    } catch (error) {
      hosts.forget()
      void this.end().catch(() => {})
      throw Object.assign(error as Error, { code: (error as { code?: string }).code ?? 'EHOSTDOWN' })
    }
  }
}

async function isReadOnly(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ transaction_read_only: string }>('SHOW transaction_read_only')
  return rows[0]?.transaction_read_only === 'on'
}
