// Runs the suite, which cannot send a key, through a proxy that adds one:
//     ANNALS_API_KEY=… node with_key.mjs SERVICE_URL PROGRAM ARGUMENT…
import { spawn } from 'node:child_process'
import { createServer, request } from 'node:http'

const [service, ...program] = process.argv.slice(2)
const proxy = createServer((asked, answer) => {
  const headers = { ...asked.headers, authorization: `Bearer ${process.env.ANNALS_API_KEY}` }
  const forwarded = request(new URL(asked.url, service), { method: asked.method, headers }, (given) => {
    answer.writeHead(given.statusCode, given.headers)
    given.pipe(answer)
  })
  forwarded.on('error', () => answer.destroy())
  asked.pipe(forwarded)
})
proxy.listen(0, '127.0.0.1', () => {
  const url = `http://127.0.0.1:${proxy.address().port}/mcp`
  const suite = spawn(process.execPath, [...program, '--url', url], { stdio: 'inherit' })
  suite.on('exit', (code) => process.exit(code ?? 1))
})
