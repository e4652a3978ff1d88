export interface Sent {
  method: string
  url: string
  headers: Record<string, string>
  body: string | undefined
  at_ms: number
}

/** An answer, or an error in the place of one. */
type Step = Response | Error | ((signal: AbortSignal) => Promise<Response>)

/** A fetch that gives these answers one after the other, and the requests that it was asked to send. */
export function scriptedFetch(...steps: Step[]): { fetch: typeof fetch; sent: Sent[] } {
  const sent: Sent[] = []
  const scripted = async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const headers = Object.fromEntries(new Headers(init.headers))
    const { method = 'GET', body } = init
    sent.push({ method, url: String(input), headers, body: body as string | undefined, at_ms: Date.now() })
    const step = steps[sent.length - 1]
    if (step === undefined) throw new Error(`The script has no answer for request ${sent.length}`)
    if (step instanceof Error) throw step
    return typeof step === 'function' ? step(init.signal!) : step
  }
  return { fetch: scripted, sent }
}

/** A success of Annals. */
export function ok(data: unknown = {}): Response {
  return json(200, { code: 0, error: '', msg: 'ok', data })
}

/** A refusal of Annals. */
export function refused(status: number, error: string, headers: Record<string, string> = {}): Response {
  return json(status, { code: status, error, msg: `This is ${error}.` }, headers)
}

/** What fetch throws when the connection breaks. */
export function broken(): Error {
  return new TypeError('fetch failed', {
    cause: Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }),
  })
}

/** No answer until the request is given up. */
export function silence(signal: AbortSignal): Promise<Response> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason))
  })
}

function json(status: number, body: unknown, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { 'content-type': 'application/json', 'x-request-id': 'request-1', ...headers },
  })
}
