import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { Annals } from '@annals/client'
import { build } from 'vite'

/**
 * Serves chat.tsx on its own port, and gives it tokens. The API key stays here:
 *
 *     ANNALS_URL=http://127.0.0.1:8029 ANNALS_API_KEY=sk-… npm run chat
 */
export async function startChat({ url, token, session_id, port, tokenFor }) {
  const { output } = await build({
    configFile: false,
    logLevel: 'warn',
    oxc: { jsx: { runtime: 'automatic', development: false } },
    define: { 'process.env.NODE_ENV': '"production"' },
    build: {
      write: false,
      target: 'es2022',
      lib: { entry: fileURLToPath(new URL('chat.tsx', import.meta.url)), formats: ['es'], fileName: 'chat' },
    },
  }).then((built) => [built].flat()[0])
  const page =
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Chat</title><link rel="icon" href="data:,"><script type="module" src="/chat.js"></script>'
  const json = { 'content-type': 'application/json', 'cache-control': 'no-store' }
  const annals = new Annals({ url, token })
  let origin = ''
  // A token for this session, and for this page alone. A real server looks first who asks for it.
  const scopes = ['read', 'append', 'inbox', 'resolve']
  const make = tokenFor ?? (() => annals.tokens.create({ for: { session_id }, scopes, ttl_s: 900, origin }))
  const answers = {
    'GET /': async () => [{ 'content-type': 'text/html; charset=utf-8' }, page],
    'GET /chat.js': async () => [{ 'content-type': 'text/javascript; charset=utf-8' }, output[0].code],
    'GET /chat.json': async () => [json, JSON.stringify({ url, session_id })],
    'POST /token': async () => [json, JSON.stringify(await make(origin))],
  }
  const server = createServer((request, response) => {
    const answer = answers[`${request.method} ${request.url}`]
    // A form of another page cannot have a token made: a browser says where it comes from.
    const isForeign = request.headers.origin !== undefined && request.headers.origin !== origin
    if (!answer || isForeign) return response.writeHead(404).end()
    answer().then(
      ([headers, body]) => response.writeHead(200, headers).end(body),
      (error) => response.writeHead(502).end(error.message),
    )
  })
  await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${server.address().port}`
  return { url: origin, server }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const url = process.env.ANNALS_URL ?? 'http://127.0.0.1:8029'
  const annals = new Annals({ url, token: process.env.ANNALS_API_KEY })
  const session = await annals.sessions.create({ user: 'ada', configs: { topic: 'Support' } })
  const options = { url, token: process.env.ANNALS_API_KEY, session_id: session.id }
  const chat = await startChat({ ...options, port: Number(process.env.PORT ?? 8030) })
  process.stdout.write(`The chat is at ${chat.url}, and its session is ${session.id}.\n`)
}
