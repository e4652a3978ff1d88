import { createHash, randomBytes } from 'node:crypto'

export const CHUNK_BYTES = 256 * 1024

/** Bytes that no other test has. */
export function newBytes(length: number): Buffer {
  return randomBytes(length)
}

export function sha256Of(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

export function blobUrl(url: string, sha256: string): string {
  return `${url}/api/v1/blobs/${sha256}`
}

/** Sends bytes under their hash, or under another one. */
export function putBlob(
  url: string,
  token: string,
  bytes: Buffer,
  sha256 = sha256Of(bytes),
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(blobUrl(url, sha256), {
    method: 'PUT',
    headers: { Authorization: `Bearer ${token}`, ...headers },
    body: bytes as Uint8Array<ArrayBuffer>,
  })
}

export function getBlob(
  url: string,
  token: string,
  sha256: string,
  options: { method?: string; headers?: Record<string, string> } = {},
): Promise<Response> {
  const headers = { Authorization: `Bearer ${token}`, ...options.headers }
  return fetch(blobUrl(url, sha256), { ...options, headers })
}

/** The bytes of an answer that has them. */
export async function bytesOf(response: Response): Promise<Buffer> {
  return Buffer.from(await response.arrayBuffer())
}

export async function errorOf(response: Response): Promise<{ status: number; error: string; msg: string }> {
  const { error, msg } = (await response.json()) as { error: string; msg: string }
  return { status: response.status, error, msg }
}
