import { ASKED as CHAT, type Fixture } from './fixtures.js'

const json = JSON.stringify
const COMPLETION = { model: 'm', choices: [{ index: 0, message: { role: 'assistant', content: 'Cold.' } }] }

export const VENDOR_FIXTURES: Fixture[] = [
  {
    name: 'MLflow, whose texts are JSON',
    usage: { input_tokens: 30, output_tokens: 2, total_tokens: 32 },
    model: {
      attributes: {
        'mlflow.spanType': '"CHAT_MODEL"',
        'mlflow.spanInputs': json({ model: 'm', messages: CHAT }),
        'mlflow.spanOutputs': json(COMPLETION),
        'mlflow.chat.tokenUsage': json({ input_tokens: 30, output_tokens: 2, total_tokens: 32 }),
      },
    },
    tool: {
      span: 'weather',
      attributes: {
        'mlflow.spanType': '"TOOL"',
        'mlflow.spanInputs': '{"city":"Oslo"}',
        'mlflow.spanOutputs': '"4 degrees"',
      },
    },
  },
  {
    name: 'Braintrust',
    usage: { input_tokens: 30, output_tokens: 2 },
    model: {
      attributes: {
        'braintrust.span_attributes': json({ type: 'llm', name: 'Chat Completion' }),
        'braintrust.metadata': json({ model: 'm' }),
        'braintrust.metrics': json({ prompt_tokens: 30, completion_tokens: 2 }),
        'braintrust.input_json': json(CHAT),
        'braintrust.output_json': json(COMPLETION.choices),
      },
    },
    tool: {
      attributes: {
        'braintrust.span_attributes': json({ type: 'tool', name: 'weather' }),
        'braintrust.input_json': '{"city":"Oslo"}',
        'braintrust.output_json': '"4 degrees"',
      },
    },
  },
  {
    name: 'Genkit',
    usage: { input_tokens: 30, output_tokens: 2 },
    model: {
      attributes: {
        'gen_ai.request.model': 'm',
        'genkit:metadata:subtype': 'model',
        'genkit:input': json({
          messages: [
            { role: 'system', content: [{ text: 'Be brief.' }] },
            { role: 'user', content: [{ text: 'Weather in Oslo?' }] },
            {
              role: 'model',
              content: [{ toolRequest: { ref: 'c1', name: 'weather', input: { city: 'Oslo' } } }],
            },
            {
              role: 'tool',
              content: [{ toolResponse: { ref: 'c1', name: 'weather', output: '4 degrees' } }],
            },
          ],
        }),
        'genkit:output': json({
          message: { role: 'model', content: [{ text: 'Cold.' }] },
          usage: { inputTokens: 30, outputTokens: 2 },
        }),
      },
    },
    tool: {
      attributes: {
        'genkit:metadata:subtype': 'tool',
        'genkit:name': 'weather',
        'genkit:input': '{"city":"Oslo"}',
        'genkit:output': '"4 degrees"',
      },
    },
  },
  {
    name: 'Haystack',
    model: {
      attributes: {
        'haystack.component.type': 'OpenAIChatGenerator',
        'haystack.component.input': json({
          messages: [
            { role: 'system', content: [{ text: 'Be brief.' }] },
            { role: 'user', content: [{ text: 'Weather in Oslo?' }] },
            {
              role: 'assistant',
              content: [{ tool_call: { id: 'c1', tool_name: 'weather', arguments: { city: 'Oslo' } } }],
            },
            {
              role: 'tool',
              content: [{ tool_call_result: { result: '4 degrees', origin: { id: 'c1' }, error: false } }],
            },
          ],
        }),
        'haystack.component.output': json({
          replies: [{ role: 'assistant', content: [{ text: 'Cold.' }], meta: { model: 'm' } }],
        }),
      },
    },
  },
  {
    name: 'OpenInference where the request and the answer alone are kept',
    model: {
      attributes: {
        'openinference.span.kind': 'LLM',
        'llm.model_name': 'm',
        'input.value': json({ model: 'm', messages: CHAT }),
        'output.value': json(COMPLETION),
      },
    },
  },
  {
    name: 'Azure, whose events have their content as JSON',
    session: 't',
    model: {
      attributes: {
        'gen_ai.operation.name': 'chat',
        'gen_ai.request.model': 'm',
        'gen_ai.thread.id': 't',
      },
      events: [
        ...CHAT.map((message) => ({
          name: `gen_ai.${message.role}.message`,
          attributes: { 'gen_ai.event.content': json(message) },
        })),
        {
          name: 'gen_ai.choice',
          attributes: { 'gen_ai.event.content': json({ index: 0, message: { content: 'Cold.' } }) },
        },
      ],
    },
  },
  {
    name: 'Semantic Kernel and Spring AI',
    model: {
      attributes: { 'gen_ai.operation.name': 'chat.completions', 'gen_ai.request.model': 'm' },
      events: [
        { name: 'gen_ai.content.prompt', attributes: { 'gen_ai.prompt': json(CHAT) } },
        {
          name: 'gen_ai.content.completion',
          attributes: { 'gen_ai.completion': json([{ role: 'assistant', content: 'Cold.' }]) },
        },
      ],
    },
    tool: {
      attributes: {
        'spring.ai.kind': 'tool_call',
        'spring.ai.tool.definition.name': 'weather',
        'spring.ai.tool.call.arguments': '{"city":"Oslo"}',
        'spring.ai.tool.call.result': '4 degrees',
      },
    },
  },
  {
    name: 'Langtrace and AgentOps',
    model: {
      attributes: {
        'langtrace.service.type': 'llm',
        'llm.model': 'm',
        'llm.prompts': json(CHAT),
        'llm.responses': json([{ role: 'assistant', content: 'Cold.' }]),
      },
    },
    tool: {
      attributes: {
        'agentops.span.kind': 'tool',
        'tool.name': 'weather',
        'tool.parameters': '{"city":"Oslo"}',
        'tool.result': '4 degrees',
      },
    },
  },
]
