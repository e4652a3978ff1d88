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
import type { PendingAppend } from '../log/append/pending_append.js'
import { VERSION } from '../version.js'

const NAME = 'annals'
/** How long the end of the service waits for spans that are still to be sent, in ms. */
const SEND_MS_MAX = 2_000

/** One request as it is traced. */
export interface RequestTrace {
  /** Goes on so that what is done next belongs to this request. */
  enter(next: () => void): void
  /** `status` is undefined where the connection ended without an answer. Once. */
  end(outcome: { status: number | undefined; project_id: string | undefined }): void
}

const UNTRACED: RequestTrace = { enter: (next) => next(), end: () => {} }

/** Gives the tracing where a tracer is registered; undefined otherwise. */
export function registeredTracing(): Tracing | undefined {
  const provider = trace.getTracerProvider()
  // The API puts a proxy before what is registered, which has no tracer to give as long as nothing is.
  const proxy = provider as Partial<{ getDelegateTracer: typeof provider.getTracer }>
  const tracer = proxy.getDelegateTracer
    ? proxy.getDelegateTracer(NAME, VERSION)
    : provider.getTracer(NAME, VERSION)
  return tracer && new Tracing(tracer)
}

/**
 * Spans of requests, of their wait in the queue of appends, and of commits. A commit serves many requests: it stands
 * below the first of them that is recorded, is linked to each, and each one's wait is linked to it. No span has a
 * path, a query, a header or a body: these name users and hold payloads.
 */
export class Tracing {
  constructor(private readonly tracer: Tracer) {}

  /** `route` is the pattern, undefined where nothing fits the path. */
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
    // An instrumentation of Node's HTTP server has made a span already: it gets what it cannot know.
    const outer = trace.getSpan(context.active())
    if (outer) {
      outer.updateName(name).setAttributes(attributes)
      return traceIn(context.active(), outer, true)
    }
    const parent = propagation.extract(ROOT_CONTEXT, headers)
    const span = this.tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, parent)
    return traceIn(trace.setSpan(parent, span), span, false)
  }

  /** Where an append comes from. */
  origin(): Context {
    return context.active()
  }

  /** Runs the flush of `taken`, of which each `origin` is a context. */
  async flush(taken: readonly PendingAppend[], run: () => Promise<void>): Promise<void> {
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

  private startCommit(taken: readonly PendingAppend[], traced: readonly PendingAppend[]): Span {
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

  /** Notes what the flush that is under way met. */
  flushTroubled(trouble: string): void {
    const commit = trace.getActiveSpan()
    commit?.addEvent(trouble)
    if (trouble === 'unavailable' || trouble === 'in_doubt') {
      commit?.setAttribute('error.type', trouble).setStatus({ code: SpanStatusCode.ERROR })
    }
  }

  /** Has what was recorded sent, as far as the SDK can be asked to and does so in time. */
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
      // The rest of another's span is that other's to say.
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

/** What the user's SDK, its processors and exporters included, throws costs spans and nothing else. */
function harmless<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    diag.error('Annals could not trace.', error)
    return undefined
  }
}
