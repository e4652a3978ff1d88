import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'
import { newSessionLog } from '../harness/session_log.ts'

/* What stands ahead of a part of a form is read as text, of any length that the service takes. */

const service = useSharedService()
let api: ApiClient
beforeAll(async () => {
  api = await service.newClient()
})

/** Sends a message as a form with a further part, which has this in its head. */
async function send(head: string) {
  const { id } = await newSessionLog(api)
  const part = (head: string, content: string) =>
    `--b\r\nContent-Disposition: form-data; ${head}\r\n\r\n${content}\r\n`
  const rawBody = `${part('name="payload"', '{}')}${part(head, 'a')}--b--\r\n`
  const headers = { 'Content-Type': 'multipart/form-data; boundary=b' }
  return api.request('POST', `/api/v1/session/${id}/messages`, { rawBody, headers })
}

describe('a part of a form', () => {
  it.each<[string, string]>([
    ['name', `name="${'\u0001'.repeat(1_000_000)}"`],
    ['file name', `name="a"; filename="${'%22'.repeat(1_000_000)}"`],
    ['media type', `name="a"; filename="a"\r\nContent-Type: a/${'b'.repeat(1_000_000)}`],
    ['further header', `name="a"\r\nX: ${'a'.repeat(1_000_000)}`],
  ])('with a %s of a megabyte is refused before it is read', async (_what, head) => {
    expectError(await send(head), 400, 'invalid_request', 'more than 16384 bytes of headers')
  })

  it('is named by a refusal so that it can be read, and no more of it than that takes', async () => {
    const answer = await send(`name="\u202e${'x'.repeat(10_000)}"`)
    expectError(answer, 400, 'invalid_request', '\\u202exxx')
    expect(answer.text.length).toBeLessThan(500)
  })
})
