import { serveWork } from '@annals/kits/threads/serve_work.js'
import type { OtelWork, StoreAnswers, StoreCall } from './otel_on_thread.js'
import { takeIn } from './take_in.js'

serveWork(
  (call): OtelWork => ({
    take: (sent, body) =>
      takeIn(sent, body, (asked: StoreCall) => call(asked) as Promise<StoreAnswers[never]>),
  }),
)
