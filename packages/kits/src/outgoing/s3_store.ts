import type { ClientRequest } from 'node:http'
import { createRequire } from 'node:module'
import { Readable } from 'node:stream'
import type { S3Client } from '@aws-sdk/client-s3'
import type { Config } from '../configuration/config.js'
import { AnnalsError, notFound, StartError } from '../errors.js'
import { FairSemaphore } from '../fairness/fair_queue.js'
import { boundedAgents } from './bounded_request.js'
import { type ObjectStore, ObjectStoreAway, WrongBytes } from './object_store.js'

const SIGNED_S = 60
const CONNECT_MS_MAX = 3_000
/** Of a connection on which nothing is sent either way. */
const IDLE_MS_MAX = 30_000
/** Of a store that has been sent all that it needs for an answer. */
const ANSWER_MS_MAX = 8_000
/** Connections to the store, which projects share: one alone gets half of them, however slow its clients are. */
const CONNECTIONS_MAX = 100
const WAIT_MS_MAX = 3_000
/** Of an answer that is no object. */
const SAYS_BYTES_MAX = 64 * 1024
const MEDIA_TYPE = 'application/octet-stream'

const TOO_MANY =
  'This project has too many attachments on their way to their store, or from there. Nothing was done; retry shortly.'

/** Packages that only deployments with a bucket need: a sixth of the download of an installation by name. */
const PACKAGES = ['@aws-sdk/client-s3', '@aws-sdk/s3-request-presigner']

/**
 * The object store that the settings name, if any. Nothing of it is loaded before it is used, or told to load.
 * @throws StartError if its packages are not installed
 */
export function objectStoreOf(config: Config): ObjectStore | undefined {
  if (config.s3_bucket === undefined) return undefined
  const { resolve } = createRequire(import.meta.url)
  try {
    for (const name of PACKAGES) resolve(name)
  } catch {
    throw new StartError(
      `ANNALS_S3_BUCKET needs two more packages. Install them next to annals: npm install ${PACKAGES.join(' ')}`,
    )
  }
  return new S3Store(config, config.s3_bucket)
}

class S3Store implements ObjectStore {
  private connected: ReturnType<typeof connect> | undefined
  private readonly connections = new FairSemaphore({
    places_max: CONNECTIONS_MAX,
    wait_ms_max: WAIT_MS_MAX,
    refusal: () => new AnnalsError('overloaded', TOO_MANY),
  })

  constructor(
    private readonly config: Config,
    private readonly Bucket: string,
  ) {}

  async load(): Promise<void> {
    await Promise.all([this.connect(), import('@aws-sdk/s3-request-presigner')])
    // The SDK's first request holds the event loop for up to 25 ms, so it is made before anybody waits. If the store is
    // away, the first caller that needs it is told.
    this.check().catch(() => {})
  }

  put(
    Key: string,
    ...object: [source: AsyncIterable<Buffer>, length: number, sha256: string]
  ): Promise<void> {
    return this.connections.run(ownerOf(Key), () => this.send(Key, ...object))
  }

  private async send(Key: string, source: AsyncIterable<Buffer>, length: number, sha256: string) {
    const { sdk, client } = await this.connect()
    const body = Readable.from(source)
    const abort = new AbortController()
    let failure: Error | undefined
    body.on('error', (error) => {
      failure = error
      abort.abort()
    })
    const object = { Bucket: this.Bucket, Key, Body: body, ContentLength: length, ContentType: MEDIA_TYPE }
    const command = new sdk.PutObjectCommand(object)
    // Part of the signature: the store refuses other bytes, and nobody has to read them twice.
    command.middlewareStack.add(
      (next) => (args) => {
        Object.assign((args.request as { headers: object }).headers, { 'x-amz-content-sha256': sha256 })
        return next(args)
      },
      { step: 'build' },
    )
    try {
      await client.send(command, { abortSignal: abort.signal })
    } catch (error) {
      throw failure ?? away(error)
    } finally {
      body.destroy()
    }
  }

  async *get(Key: string, from: number, to: number, bytes: number): AsyncGenerator<Buffer> {
    const owner = ownerOf(Key)
    if (!this.connections.tryTake(owner, 1)) await this.connections.wait(owner, 1)
    try {
      let missing = to - from
      for await (const piece of steadily(await this.receive(Key, from, to, bytes))) {
        missing -= piece.length
        if (missing < 0) break
        yield piece
      }
      if (missing !== 0) throw new WrongBytes()
    } finally {
      this.connections.giveBack(owner, 1)
    }
  }

  private async receive(Key: string, from: number, to: number, bytes: number): Promise<Readable> {
    const { sdk, client } = await this.connect()
    const asked = { Bucket: this.Bucket, Key, Range: `bytes=${from}-${to - 1}` }
    const get = (abortSignal: AbortSignal) => client.send(new sdk.GetObjectCommand(asked), { abortSignal })
    const { Body, ContentLength, ContentRange, $metadata } = await answered(get).catch((error) => {
      // Where the object ends before the range begins, it is not the one that was stored.
      if (error?.$metadata?.httpStatusCode === 416) throw new WrongBytes()
      throw error instanceof sdk.NoSuchKey ? notFound('blob') : away(error)
    })
    const isWhole = to - from === bytes
    // The hash tells whether a whole is right; of a part, only the store can tell which it is.
    const isAsked =
      ContentRange === undefined
        ? isWhole
        : $metadata.httpStatusCode === 206 && isRange(ContentRange, from, to, bytes)
    if (isAsked && (ContentLength ?? to - from) === to - from) return Body as Readable
    ;(Body as Readable).destroy()
    throw new WrongBytes()
  }

  delete(Key: string): Promise<void> {
    return this.connections.run(ownerOf(Key), () => this.remove(Key))
  }

  private async remove(Key: string): Promise<void> {
    const { sdk, client } = await this.connect()
    const object = { Bucket: this.Bucket, Key }
    try {
      await answered((abortSignal) => client.send(new sdk.DeleteObjectCommand(object), { abortSignal }))
      await answered((abortSignal) => client.send(new sdk.HeadObjectCommand(object), { abortSignal }))
    } catch (error) {
      if (error instanceof sdk.NotFound) return
      throw away(error)
    }
    throw away(new Error('an object is still there after it was deleted'))
  }

  async sign(Key: string, filename: string): Promise<string> {
    const [{ sdk, client }, { getSignedUrl }] = await Promise.all([
      this.connect(),
      import('@aws-sdk/s3-request-presigner'),
    ])
    const command = new sdk.GetObjectCommand({
      Bucket: this.Bucket,
      Key,
      ResponseContentType: MEDIA_TYPE,
      ResponseContentDisposition: `attachment; filename="${filename}"`,
    })
    return getSignedUrl(client, command, { expiresIn: SIGNED_S })
  }

  async check(): Promise<void> {
    const { sdk, client } = await this.connect()
    const command = new sdk.HeadBucketCommand({ Bucket: this.Bucket })
    await answered((abortSignal) => client.send(command, { abortSignal }))
  }

  private connect() {
    this.connected ??= connect(this.config)
    return this.connected
  }
}

async function connect(
  config: Config,
): Promise<{ sdk: typeof import('@aws-sdk/client-s3'); client: S3Client }> {
  const sdk = await import('@aws-sdk/client-s3')
  const { s3_endpoint: endpoint, s3_region: region, s3_access_key_id, s3_secret_access_key } = config
  const client = new sdk.S3Client({
    region,
    ...(endpoint !== undefined && { endpoint, forcePathStyle: true }),
    ...(s3_access_key_id !== undefined &&
      s3_secret_access_key !== undefined && {
        credentials: { accessKeyId: s3_access_key_id, secretAccessKey: s3_secret_access_key },
      }),
    // Others than Amazon do not know the newer checksums; the bytes are checked by their SHA-256.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    maxAttempts: 2,
    requestHandler: {
      connectionTimeout: CONNECT_MS_MAX,
      socketTimeout: IDLE_MS_MAX,
      ...boundedAgents({ keepAlive: true, maxSockets: CONNECTIONS_MAX }, bytesAskedFor),
    },
  })
  return { sdk, client }
}

/** Bytes that the body of an answer may have: the range that was asked for, or an error's. */
function bytesAskedFor(request: ClientRequest): number {
  const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(String(request.getHeader('range'))) ?? []
  return Math.max(to === undefined ? 0 : Number(to) - Number(from) + 1, SAYS_BYTES_MAX)
}

/** The answer to a request without a body: one that is silent counts as away. What follows the answer may take longer. */
async function answered<Answer>(ask: (signal: AbortSignal) => Promise<Answer>): Promise<Answer> {
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(), ANSWER_MS_MAX)
  try {
    return await ask(late.signal)
  } finally {
    clearTimeout(timer)
  }
}

/** Whether a `Content-Range` names these bytes; a store may leave open how many there are. */
function isRange(header: string, from: number, to: number, bytes: number): boolean {
  return [bytes, '*'].some((all) => header === `bytes ${from}-${to - 1}/${all}`)
}

/** A body that is read piece by piece: a store that does not send the next piece when it is wanted is away. */
async function* steadily(body: Readable): AsyncGenerator<Buffer> {
  const watched = () => setTimeout(() => body.destroy(new Error('the store went silent')), ANSWER_MS_MAX)
  let timer = watched()
  try {
    for await (const piece of body) {
      clearTimeout(timer)
      yield piece
      timer = watched()
    }
  } catch (error) {
    throw away(error)
  } finally {
    clearTimeout(timer)
  }
}

function ownerOf(key: string): string {
  return key.split('/', 1)[0]!
}

function away(cause: unknown): ObjectStoreAway {
  const sentence = 'The store of attachments cannot be reached at the moment. Retry shortly.'
  return new ObjectStoreAway(sentence, { cause })
}
