import {
  type Attributes,
  type Context,
  context,
  diag,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { VERSION } from '../version.js'

const NAME = 'annals'
/** How long the service waits at exit for spans to be sent, in ms. */
const SEND_MS_MAX = 2_000

export interface RequestTrace {
  /** Continues so that everything done next belongs to this request. */
  enter(next: () => void): void
  /** `status` is undefined if the connection ended without an answer. Call once. */
  end(outcome: { status: number | undefined; project_id: string | undefined }): void
}

interface TracedAppend {
  readonly origin?: unknown
  readonly enqueued_at: number
  readonly followers: readonly TracedAppend[]
  readonly request: { project_id: string; entries: readonly unknown[] }
}

const UNTRACED: RequestTrace = { enter: (next) => next(), end: () => {} }

export function registeredTracing(): Tracing | undefined {
  const provider = trace.getTracerProvider()
  // The API puts a proxy in front of the registered provider; it has no tracer until one is registered.
  const proxy = provider as Partial<{ getDelegateTracer: typeof provider.getTracer }>
  const tracer = proxy.getDelegateTracer
    ? proxy.getDelegateTracer(NAME, VERSION)
    : provider.getTracer(NAME, VERSION)
  return tracer && new Tracing(tracer)
}

/**
 * Spans of requests, of their wait in the queue of appends, and of commits. A commit serves many requests: it is a
 * child of the first recorded one, is linked to each, and each one's wait is linked to it. Spans contain no path,
 * query, header or body, because these name users and hold payloads.
 */
export class Tracing {
  constructor(private readonly tracer: Tracer) {}

  /** `route` is the pattern; undefined if none matches the path. */
  request(
    method: string,
    route: string | undefined,
    request_id: string,
    headers: Record<string, unknown>,
  ): RequestTrace {
    const attributes = {
      'http.request.method': method,
      ...(route !== undefined && { 'http.route': route }),
      'url.scheme': 'http',
      'annals.request_id': request_id,
    }
    const name = route === undefined ? method : `${method} ${route}`
    return harmless(() => this.start(name, attributes, headers)) ?? UNTRACED
  }

  private start(name: string, attributes: Attributes, headers: Record<string, unknown>): RequestTrace {
    // An instrumentation of Node's HTTP server already made a span: add what it cannot know.
    const outer = trace.getSpan(context.active())
    if (outer) {
      outer.updateName(name).setAttributes(attributes)
      return traceIn(context.active(), outer, true)
    }
    const parent = propagation.extract(ROOT_CONTEXT, headers)
    const span = this.tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, parent)
    return traceIn(trace.setSpan(parent, span), span, false)
  }

  origin(): Context {
    return context.active()
  }

  /** Runs the flush of `taken`; each `origin` is a context. */
  async flush(taken: readonly TracedAppend[], run: () => Promise<void>): Promise<void> {
    const traced = taken
      .flatMap((pending) => [pending, ...pending.followers])
      .filter(({ origin }) => trace.getSpan(origin as Context)?.isRecording())
    const commit = traced.length > 0 ? harmless(() => this.startCommit(taken, traced)) : undefined
    if (!commit) return context.with(ROOT_CONTEXT, run)
    try {
      await context.with(trace.setSpan(traced[0]!.origin as Context, commit), run)
    } finally {
      harmless(() => commit.end())
    }
  }

  private startCommit(taken: readonly TracedAppend[], traced: readonly TracedAppend[]): Span {
    const began = performance.now()
    const origins = traced.map(({ origin }) => origin as Context)
    const commit = this.tracer.startSpan(
      'append commit',
      {
        links: origins.map((origin) => ({ context: trace.getSpanContext(origin)! })),
        attributes: {
          'annals.project_id': taken[0]!.request.project_id,
          'annals.flush.requests': taken.reduce((sum, { followers }) => sum + 1 + followers.length, 0),
          'annals.flush.entries': taken.reduce((sum, { request }) => sum + request.entries.length, 0),
        },
      },
      origins[0],
    )
    const links = [{ context: commit.spanContext() }]
    for (const { origin, enqueued_at } of traced) {
      const options = { startTime: enqueued_at, links }
      this.tracer.startSpan('append queue', options, origin as Context).end(began)
    }
    return commit
  }

  flushTroubled(trouble: string): void {
    const commit = trace.getActiveSpan()
    commit?.addEvent(trouble)
    if (trouble === 'unavailable' || trouble === 'in_doubt') {
      commit?.setAttribute('error.type', trouble).setStatus({ code: SpanStatusCode.ERROR })
    }
  }

  /** Asks the SDK to send what was recorded, within the time limit. */
  async close(): Promise<void> {
    const provider = trace.getTracerProvider() as Partial<{ getDelegate(): unknown }>
    const sdk = (provider.getDelegate?.() ?? provider) as Partial<{ forceFlush(): Promise<void> }>
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, SEND_MS_MAX)
    })
    await Promise.race([sdk.forceFlush?.(), late]).finally(() => clearTimeout(timer))
  }
}

function traceIn(inside: Context, span: Span, isOuter: boolean): RequestTrace {
  return {
    enter: (next) => context.with(inside, next),
    end: ({ status, project_id }) => {
      if (project_id !== undefined) span.setAttribute('annals.project_id', project_id)
      // The rest of a foreign span is for its owner to set.
      if (isOuter) return
      if (status !== undefined) span.setAttribute('http.response.status_code', status)
      if (status === undefined || status >= 500) {
        span.setAttribute('error.type', String(status ?? 'unanswered'))
        span.setStatus({ code: SpanStatusCode.ERROR })
      }
      harmless(() => span.end())
    },
  }
}

/** Errors of the operator's SDK, processors and exporters only cost spans. */
function harmless<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    diag.error('Annals could not trace.', error)
    return undefined
  }
}
