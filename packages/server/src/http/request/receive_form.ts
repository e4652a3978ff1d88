import { once } from 'node:events'
import { Busboy, type BusboyInstance } from '@fastify/busboy'
import type { FastifyRequest } from 'fastify'
import { AnnalsError } from '../../errors.js'
import { receiveBytes } from './receive_bytes.js'

/** Memory for each byte of the file: as it arrived, and whole. */
const FILE_FACTOR = 2
/** Memory is reserved in steps of this size. */
const STEP_BYTES = 256 * 1024
/** Room for fields and headers beside the file. */
const FIELD_BYTES_MAX = 256 * 1024

/** A form of one file, and fields with texts, each at most once. */
export interface ReceivedForm {
  file: Buffer
  fields: Record<string, string>
}

/**
 * Receives a form (multipart/form-data) with one file, in the field `file`. Memory is reserved for what has arrived.
 * @throws AnnalsError invalid_request, payload_too_large, unsupported_media_type, overloaded
 */
export async function receiveForm(request: FastifyRequest, file_bytes_max: number): Promise<ReceivedForm> {
  const { source } = receiveBytes(request)
  const parts = new FormParts(request, file_bytes_max)
  let received = 0
  for await (const piece of source) {
    received += piece.length
    if (received > file_bytes_max + FIELD_BYTES_MAX) throw fileTooLarge(file_bytes_max)
    await request.memory.hold(FILE_FACTOR * Math.ceil(received / STEP_BYTES) * STEP_BYTES)
    await parts.write(piece)
  }
  return parts.end()
}

class FormParts {
  private readonly parser: BusboyInstance
  private readonly fields: Record<string, string> = {}
  private readonly chunks: Buffer[] = []
  private has_file = false
  private fault: Error | undefined

  constructor(request: FastifyRequest, file_bytes_max: number) {
    const limits = {
      files: 1,
      fields: 8,
      parts: 9,
      fieldNameSize: 100,
      fieldSize: FIELD_BYTES_MAX,
      fileSize: file_bytes_max,
      headerPairs: 8,
    }
    try {
      this.parser = new Busboy({ headers: request.headers as { 'content-type': string }, limits })
    } catch (error) {
      throw wrongForm(error)
    }
    this.parser
      .on('error', (error) => this.fail(wrongForm(error)))
      .on('field', (name, text, _name_cut, is_cut) => this.takeField(name, text, is_cut))
      .on('file', (name, file) => {
        if (name !== 'file') this.fail(wrongForm(`${JSON.stringify(name.slice(0, 100))} is not a file here`))
        this.has_file = true
        file.on('limit', () => this.fail(fileTooLarge(file_bytes_max)))
        file.on('error', (error) => this.fail(wrongForm(error)))
        file.on('data', (chunk: Buffer) => this.chunks.push(chunk))
      })
    for (const limit of ['filesLimit', 'fieldsLimit', 'partsLimit'] as const)
      this.parser.on(limit, () => this.fail(wrongForm('it has too many parts')))
  }

  async write(piece: Buffer): Promise<void> {
    if (!this.parser.write(piece) && !this.fault) await once(this.parser, 'drain').catch(() => {})
    if (this.fault) throw this.fault
  }

  async end(): Promise<ReceivedForm> {
    const finished = once(this.parser, 'finish').catch(() => {})
    this.parser.end()
    if (!this.fault) await finished
    if (!this.has_file) this.fail(wrongForm('it has no file in the field "file"'))
    if (this.fault) throw this.fault
    return { file: Buffer.concat(this.chunks), fields: this.fields }
  }

  private takeField(name: string, text: string, is_cut: boolean): void {
    if (is_cut)
      this.fail(new AnnalsError('payload_too_large', `/${name} has more than ${FIELD_BYTES_MAX} bytes.`))
    // What a listener of the parser throws nobody catches: it would end the process.
    if (Object.hasOwn(this.fields, name))
      this.fail(wrongForm(`${JSON.stringify(name)} is given more than once`))
    else Object.defineProperty(this.fields, name, { value: text, enumerable: true })
  }

  private fail(error: Error): void {
    this.fault ??= error
  }
}

function wrongForm(why: unknown): AnnalsError {
  const said = why instanceof Error ? why.message : String(why)
  return new AnnalsError(
    'invalid_request',
    `The body must be a form, multipart/form-data, with one file: ${said}.`,
  )
}

function fileTooLarge(bytes_max: number): AnnalsError {
  return new AnnalsError('payload_too_large', `/file has more than ${bytes_max} bytes. Send a smaller one.`)
}
