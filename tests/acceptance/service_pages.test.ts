import { beforeAll, describe, expect, it } from 'vitest'
import type { HttpClient } from '../harness/http_client.ts'
import { useSharedService } from '../harness/service.ts'

const service = useSharedService()
let visitor: HttpClient

beforeAll(() => {
  visitor = service.rawClient()
})

describe('the pages outside the API need no token', () => {
  it.each(['/health', '/ready'])('%s is 200 while the service can work', async (path) => {
    const answer = await visitor.request('GET', path)
    expect(answer.status, answer.text).toBe(200)
  })

  it('/openapi.json is an OpenAPI 3.1 document', async () => {
    const answer = await visitor.request('GET', '/openapi.json')
    expect(answer.status).toBe(200)
    expect(answer.headers['content-type']).toMatch(/^application\/json\b/)
    expect(JSON.parse(answer.text)).toMatchObject({ openapi: expect.stringMatching(/^3\.1\.\d+$/) })
  })

  it('/docs is a page whose every resource comes from this service', async () => {
    let answer = await visitor.request('GET', '/docs')
    for (let hops = 0; answer.status >= 300 && answer.status < 400 && hops < 3; hops += 1) {
      const location = new URL(answer.headers.location!, `${service.node.url}/docs`)
      expect(location.origin).toBe(service.node.url)
      answer = await visitor.request('GET', location.pathname)
    }
    expect(answer.status).toBe(200)
    expect(answer.headers['content-type']).toMatch(/^text\/html\b/)
    const references = [...answer.text.matchAll(/\b(?:src|href)\s*=\s*["']?([^"'\s>]+)/gi)].map(
      (match) => match[1]!,
    )
    const base = new URL('/docs/', service.node.url)
    for (const reference of references) {
      if (reference.startsWith('data:') || reference.startsWith('#')) continue
      expect(new URL(reference, base).origin, reference).toBe(service.node.url)
    }
    expect(answer.text).not.toMatch(/@import|url\(\s*["']?(?:https?:)?\/\//i)
  })

  it('/docs loads scripts that are there', async () => {
    const page = await visitor.request('GET', '/docs')
    const html = page.status === 200 ? page.text : (await visitor.request('GET', '/docs/')).text
    const scripts = [...html.matchAll(/<script[^>]*\bsrc\s*=\s*["']?([^"'\s>]+)/gi)].map((match) => match[1]!)
    expect(scripts.length).toBeGreaterThan(0)
    const origin = page.status === 200 ? `${service.node.url}/docs` : `${service.node.url}/docs/`
    for (const script of scripts) {
      const { pathname } = new URL(script, origin)
      const answer = await visitor.request('GET', pathname)
      expect(answer.status, pathname).toBe(200)
      expect(answer.headers['content-type']).toMatch(/javascript/)
    }
  })

  it('show nothing of the database, the environment or a token', async () => {
    for (const path of ['/health', '/ready', '/openapi.json', '/docs']) {
      const { text } = await visitor.request('GET', path)
      expect(text).not.toContain(service.databaseUrl)
      expect(text).not.toContain('admin-token-of-the-acceptance-tests')
    }
  })
})
