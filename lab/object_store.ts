import { mkdtempSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import S3rver from '@20minutes/s3rver'
import {
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3'

const BUCKET = 'annals'
const KEY = 'S3RVER'

/** A server with the interface of S3 in this process, and what it keeps. */
export interface TestObjectStore {
  /** What a node needs to know of it. */
  env: Record<string, string>
  /** Keys of all objects of a project, or below another prefix, in their order. */
  keysOf(project_id: string): Promise<string[]>
  textOf(key: string): Promise<string>
  /** Puts other bytes in the place of an object, or none. */
  damage(key: string, bytes?: Buffer): Promise<unknown>
  /** Answers nothing any more, until it is started again on the same address. */
  stop(): Promise<void>
  start(): Promise<void>
  end(): Promise<void>
}

export async function startObjectStore(): Promise<TestObjectStore> {
  const directory = mkdtempSync(join(tmpdir(), 'annals-s3-'))
  let server: S3rver
  let port = 0
  const start = async () => {
    server = new S3rver({
      port,
      address: '127.0.0.1',
      silent: true,
      directory,
      // It canonicalizes some queries otherwise than S3 does.
      allowMismatchedSignatures: true,
      configureBuckets: [{ name: BUCKET, configs: [] }],
    })
    showWholeObjectsOnly(server)
    port = ((await server.run()) as AddressInfo).port
  }
  await start()
  const endpoint = `http://127.0.0.1:${port}`
  const client = new S3Client({
    endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId: KEY, secretAccessKey: KEY },
  })
  return {
    env: {
      ANNALS_S3_BUCKET: BUCKET,
      ANNALS_S3_ENDPOINT: endpoint,
      ANNALS_S3_ACCESS_KEY_ID: KEY,
      ANNALS_S3_SECRET_ACCESS_KEY: KEY,
    },
    keysOf: async (project_id) => {
      const listed = await client.send(new ListObjectsV2Command({ Bucket: BUCKET, Prefix: `${project_id}/` }))
      return (listed.Contents ?? []).map(({ Key }) => Key!)
    },
    textOf: async (Key) =>
      (await client.send(new GetObjectCommand({ Bucket: BUCKET, Key }))).Body!.transformToString(),
    damage: (Key, Body) =>
      Body
        ? client.send(new PutObjectCommand({ Bucket: BUCKET, Key, Body }))
        : client.send(new DeleteObjectCommand({ Bucket: BUCKET, Key })),
    start,
    stop: () => server.close(),
    end: async () => {
      client.destroy()
      await server.close().catch(() => {})
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** The server shows an object before its last byte is there, and keeps what a broken upload sent. S3 does neither. */
function showWholeObjectsOnly({ store }: S3rver): void {
  const putContent = store.putContent.bind(store)
  store.putContent = async (path, content) => {
    if (Buffer.isBuffer(content)) return putContent(path, content)
    const unfinished = `${path}.unfinished`
    const size_and_hash = await putContent(unfinished, content)
    await rename(unfinished, path)
    return size_and_hash
  }
}
