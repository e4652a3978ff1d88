import { AsyncLocalStorage } from 'node:async_hooks'
import { createServer } from 'node:http'
import { context, ROOT_CONTEXT, trace } from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node'

/**
 * Agents that are instrumented with SDKs of others, each in a process of its own as its libraries are set up for a whole
 * process: `node otel_agents.js <which> <url> <key>`. Their model is scripted: it asks for a tool, and then answers.
 */
const [, , which, url, key] = process.argv

const TOOL_CALL = {
  id: 'call_1',
  type: 'function',
  function: { name: 'weather', arguments: '{"city":"Oslo"}' },
}
const PARAMETERS = { type: 'object', properties: { city: { type: 'string' } } }
const TOOLS = [{ type: 'function', function: { name: 'weather', parameters: PARAMETERS } }]
const USAGE = { prompt_tokens: 30, completion_tokens: 5, total_tokens: 35 }

const model = createServer(async (request, response) => {
  let text = ''
  for await (const piece of request) text += piece
  const { messages, model: name } = JSON.parse(text)
  const has_result = messages.some(({ role }) => role === 'tool')
  const message = has_result
    ? { role: 'assistant', content: 'It is 4 degrees.' }
    : { role: 'assistant', content: null, tool_calls: [TOOL_CALL] }
  const choices = [{ index: 0, finish_reason: has_result ? 'stop' : 'tool_calls', message }]
  response.setHeader('content-type', 'application/json')
  response.end(
    JSON.stringify({ id: 'x', object: 'chat.completion', created: 1, model: name, choices, usage: USAGE }),
  )
})
await new Promise((resolve) => model.listen(0, '127.0.0.1', resolve))
const baseURL = `http://127.0.0.1:${model.address().port}/v1`

/** Names the session on every span, as a processor that copies baggage does. */
const stamp = {
  onStart: (span) => span.setAttribute('session.id', which),
  onEnd() {},
  forceFlush: async () => {},
  shutdown: async () => {},
}
const exporter = new OTLPTraceExporter({
  url: `${url}/api/v1/otel/v1/traces`,
  headers: { Authorization: `Bearer ${key}` },
  compression: 'gzip',
})
const provider = new NodeTracerProvider({ spanProcessors: [stamp, new BatchSpanProcessor(exporter)] })
trace.setGlobalTracerProvider(provider)
const current = new AsyncLocalStorage()
context.setGlobalContextManager({
  active: () => current.getStore() ?? ROOT_CONTEXT,
  with: (active, run, self, ...values) => current.run(active, () => run.call(self, ...values)),
  bind: (active, run) =>
    typeof run === 'function' ? (...values) => current.run(active, () => run(...values)) : run,
  enable() {
    return this
  },
  disable() {
    return this
  },
})

const AGENTS = {
  async openinference() {
    const { default: OpenAI } = await import('openai')
    const { OpenAIInstrumentation } = await import('@arizeai/openinference-instrumentation-openai')
    const instrumentation = new OpenAIInstrumentation()
    instrumentation.setTracerProvider(provider)
    instrumentation.manuallyInstrument(OpenAI)
    const { chat } = new OpenAI({ apiKey: 'x', baseURL })
    const messages = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Weather in Oslo?' },
    ]
    const ask = async () => {
      const { choices } = await chat.completions.create({ model: 'gpt-x', messages, tools: TOOLS })
      messages.push(choices[0].message)
    }
    await ask()
    messages.push({ role: 'tool', tool_call_id: 'call_1', content: '4 degrees' })
    await ask()
  },

  aiSdk: () => aiSdk('OpenTelemetry'),
  aiSdkLegacy: () => aiSdk('LegacyOpenTelemetry'),

  async langfuse() {
    const { startActiveObservation, startObservation } = await import('@langfuse/tracing')
    await startActiveObservation(
      'agent',
      async () => {
        const asked = [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'Weather in Oslo?' },
        ]
        const called = { role: 'assistant', content: null, tool_calls: [TOOL_CALL] }
        const generation = (input, output) => {
          const one = startObservation('llm', { model: 'gpt-x', input }, { asType: 'generation' })
          one.update({ output, usageDetails: { input: 30, output: 5 } }).end()
        }
        generation(asked, called)
        const tool = startObservation('weather', { input: { city: 'Oslo' } }, { asType: 'tool' })
        tool.update({ output: '4 degrees' }).end()
        const result = { role: 'tool', tool_call_id: 'call_1', content: '4 degrees' }
        generation([...asked, called, result], 'It is 4 degrees.')
      },
      { asType: 'agent' },
    )
  },
}

async function aiSdk(name) {
  const { generateText, jsonSchema, registerTelemetry, stepCountIs, tool } = await import('ai')
  const telemetries = await import('@ai-sdk/otel')
  const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
  registerTelemetry(new telemetries[name]())
  await generateText({
    model: createOpenAICompatible({ name: 'scripted', baseURL, apiKey: 'x' })('gpt-x'),
    system: 'Be brief.',
    prompt: 'Weather in Oslo?',
    stopWhen: stepCountIs(3),
    tools: { weather: tool({ inputSchema: jsonSchema(PARAMETERS), execute: async () => '4 degrees' }) },
  })
}

await AGENTS[which]()
await provider.shutdown()
model.close()
