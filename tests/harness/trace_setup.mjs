// What a user would give to `node --import`: an OpenTelemetry SDK, which here writes each span to SPANS_FILE as a line.
import { appendFileSync } from 'node:fs'
import { NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node'

const exporter = {
  export(spans, done) {
    for (const span of spans) {
      const { name, kind, status, attributes, links, events, startTime, endTime } = span
      const line = {
        name,
        kind,
        status: status.code,
        attributes,
        events: events.map((event) => event.name),
        trace_id: span.spanContext().traceId,
        span_id: span.spanContext().spanId,
        parent_id: span.parentSpanContext?.spanId,
        links: links.map(({ context }) => context.spanId),
        start: startTime,
        end: endTime,
      }
      appendFileSync(process.env.SPANS_FILE, `${JSON.stringify(line)}\n`)
    }
    done({ code: 0 })
  },
  async shutdown() {},
}

new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register()
