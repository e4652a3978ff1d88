import { faultOf } from './checks.ts'
import { bind, type Known, type Plan, type Request } from './requests.ts'
import type { Answer } from './send.ts'
import { findStoring } from './stored.ts'

/** So many requests are under way at once. */
const AT_ONCE = 16

/** A request that showed something wrong. */
export interface Finding {
  request: Request
  fault: string
  answer: Answer | undefined
}

export interface RoundParts {
  send(request: Request): Promise<Answer>
  digest(): Promise<string>
  onAnswer(request: Request, answer: Answer): void
}

/** Carries out plans one after another, some at once; gives what was found. */
export async function runRound(plans: Plan[], parts: RoundParts): Promise<Finding[]> {
  // Without a prototype: an id may be called constructor.
  const known: Known = Object.create(null)
  const findings: Finding[] = []
  const failed: Request[] = []
  for (let at = 0; at < plans.length; at += AT_ONCE) {
    const requests = plans.slice(at, at + AT_ONCE).map((plan) => bind(plan, known))
    await Promise.all(
      requests.map(async (request) => {
        const answer = await attempt(request, parts, findings)
        if (!answer) return
        if (answer.status >= 400) failed.push(request)
        else remember(known, request, answer)
      }),
    )
  }
  for (const request of await findStoring(failed, parts.send, parts.digest))
    findings.push({ request, fault: 'it stored something although it failed', answer: undefined })
  return findings
}

async function attempt(
  request: Request,
  parts: RoundParts,
  findings: Finding[],
): Promise<Answer | undefined> {
  try {
    const answer = await parts.send(request)
    parts.onAnswer(request, answer)
    const fault = faultOf(request, answer)
    if (fault) findings.push({ request, fault, answer })
    return answer
  } catch (error) {
    findings.push({ request, fault: `no answer: ${(error as Error).message}`, answer: undefined })
    return undefined
  }
}

/** Keeps the ids that an answer has, for later requests to name. */
function remember(known: Known, { operation, body, path }: Request, { text, headers }: Answer): void {
  // A file is of no further use.
  if (!/^application\/json\b/.test(headers['content-type'] ?? '')) return
  const [, outer = ''] = /\/(?:session|projects)\/([^/?]+)/.exec(path) ?? []
  const { data } = JSON.parse(text) as { data: Record<string, unknown> }
  const add = (name: string, id: unknown) => {
    if (typeof id === 'string') known[name] = [...(known[name] ?? []), id].slice(-50)
  }
  switch (operation.id) {
    case 'createSession':
      add('session_id', data.id)
      add('identifier', userIn(body))
      break
    case 'deleteSession':
      known.session_id = known.session_id?.filter((id) => id !== outer) ?? []
      break
    case 'copySession':
      add('session_id', data.new_session_id)
      break
    case 'addMessage':
      add('message_id', data.id)
      add(data.id as string, outer)
      break
    case 'createLearningSpace':
      add('learning_space_id', data.id)
      add('identifier', userIn(body))
      break
    case 'createProject':
      add('project_id', (data.project as { id: string }).id)
      break
    case 'createToken':
      add('token_id', data.id)
      add(data.id as string, outer)
      break
  }
}

function userIn(body: string | undefined): unknown {
  return body === undefined || body === '' ? undefined : (JSON.parse(body) as { user?: unknown }).user
}
