import type { SpanEvent } from '../src/index.js'

/** What every dialect below says of one call of a model, and of one of a tool. */
export const ASKED = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'Weather in Oslo?' },
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } }],
  },
  { role: 'tool', tool_call_id: 'c1', content: '4 degrees' },
]
export const ANSWERED = [{ role: 'assistant', content: 'Cold.' }]
const json = JSON.stringify

export interface Fixture {
  name: string
  model: { span?: string; attributes: Record<string, unknown>; events?: Array<Partial<SpanEvent>> }
  tool?: { span?: string; attributes: Record<string, unknown>; events?: Array<Partial<SpanEvent>> }
  usage?: object
  session?: string
  user?: string
}

export const FIXTURES: Fixture[] = [
  {
    name: 'OpenTelemetry GenAI',
    session: 's',
    user: 'u',
    usage: { input_tokens: 30, output_tokens: 2, cached_tokens: 8 },
    model: {
      attributes: {
        'gen_ai.operation.name': 'chat',
        'gen_ai.conversation.id': 's',
        'user.id': 'u',
        'gen_ai.response.model': 'm',
        'gen_ai.usage.input_tokens': 30,
        'gen_ai.usage.output_tokens': 2,
        'gen_ai.usage.cache_read.input_tokens': 8,
        'gen_ai.system_instructions': json([{ type: 'text', content: 'Be brief.' }]),
        'gen_ai.input.messages': json([
          { role: 'user', parts: [{ type: 'text', content: 'Weather in Oslo?' }] },
          {
            role: 'assistant',
            parts: [{ type: 'tool_call', id: 'c1', name: 'weather', arguments: { city: 'Oslo' } }],
          },
          { role: 'tool', parts: [{ type: 'tool_call_response', id: 'c1', response: '4 degrees' }] },
        ]),
        'gen_ai.output.messages': json([
          { role: 'assistant', parts: [{ type: 'text', content: 'Cold.' }], finish_reason: 'stop' },
        ]),
      },
    },
    tool: {
      attributes: {
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': 'weather',
        'gen_ai.tool.call.id': 'c1',
        'gen_ai.tool.call.arguments': '{"city":"Oslo"}',
        'gen_ai.tool.call.result': '4 degrees',
      },
    },
  },
  {
    name: 'OpenTelemetry GenAI as events of a span',
    model: {
      attributes: { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'm' },
      events: [
        { name: 'gen_ai.system.message', attributes: { content: 'Be brief.' } },
        { name: 'gen_ai.user.message', attributes: { content: 'Weather in Oslo?' } },
        {
          name: 'gen_ai.assistant.message',
          attributes: {
            tool_calls: json([
              { id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } },
            ]),
          },
        },
        { name: 'gen_ai.tool.message', attributes: { id: 'c1', content: '4 degrees' } },
        {
          name: 'gen_ai.choice',
          attributes: { index: 0, finish_reason: 'stop', message: json({ content: 'Cold.' }) },
        },
      ],
    },
  },
  {
    name: 'Pydantic AI',
    session: 's',
    model: {
      span: 'chat m',
      attributes: {
        'gen_ai.operation.name': 'chat',
        'gen_ai.request.model': 'm',
        'gen_ai.conversation.id': 's',
        events: json([
          { 'event.name': 'gen_ai.system.message', content: 'Be brief.', role: 'system' },
          { 'event.name': 'gen_ai.user.message', content: 'Weather in Oslo?', role: 'user' },
          {
            'event.name': 'gen_ai.assistant.message',
            role: 'assistant',
            tool_calls: [
              { id: 'c1', type: 'function', function: { name: 'weather', arguments: { city: 'Oslo' } } },
            ],
          },
          {
            'event.name': 'gen_ai.tool.message',
            role: 'tool',
            id: 'c1',
            name: 'weather',
            content: '4 degrees',
          },
          { 'event.name': 'gen_ai.choice', index: 0, message: { role: 'assistant', content: 'Cold.' } },
        ]),
      },
    },
    tool: {
      span: 'running tool',
      attributes: {
        'gen_ai.tool.name': 'weather',
        'gen_ai.tool.call.id': 'c1',
        tool_arguments: '{"city":"Oslo"}',
        tool_response: '4 degrees',
      },
    },
  },
  {
    name: 'OpenInference',
    session: 's',
    user: 'u',
    usage: { input_tokens: 30, output_tokens: 2, total_tokens: 32 },
    model: {
      attributes: {
        'openinference.span.kind': 'LLM',
        'session.id': 's',
        'user.id': 'u',
        'llm.model_name': 'm',
        'llm.token_count.prompt': 30,
        'llm.token_count.completion': 2,
        'llm.token_count.total': 32,
        'llm.input_messages.0.message.role': 'system',
        'llm.input_messages.0.message.content': 'Be brief.',
        'llm.input_messages.1.message.role': 'user',
        'llm.input_messages.1.message.contents.0.message_content.type': 'text',
        'llm.input_messages.1.message.contents.0.message_content.text': 'Weather in Oslo?',
        'llm.input_messages.2.message.role': 'assistant',
        'llm.input_messages.2.message.tool_calls.0.tool_call.id': 'c1',
        'llm.input_messages.2.message.tool_calls.0.tool_call.function.name': 'weather',
        'llm.input_messages.2.message.tool_calls.0.tool_call.function.arguments': '{"city":"Oslo"}',
        'llm.input_messages.3.message.role': 'tool',
        'llm.input_messages.3.message.tool_call_id': 'c1',
        'llm.input_messages.3.message.content': '4 degrees',
        'llm.output_messages.0.message.role': 'assistant',
        'llm.output_messages.0.message.content': 'Cold.',
        'input.value': '{"the":"whole request"}',
      },
    },
    tool: {
      attributes: {
        'openinference.span.kind': 'TOOL',
        'tool.name': 'weather',
        'tool_call.id': 'c1',
        'input.value': '{"city":"Oslo"}',
        'output.value': '4 degrees',
      },
    },
  },
  {
    name: 'AI SDK',
    usage: { input_tokens: 30, output_tokens: 2 },
    session: 's',
    user: 'u',
    model: {
      attributes: {
        'ai.operationId': 'ai.generateText.doGenerate',
        'ai.telemetry.metadata.sessionId': 's',
        'ai.telemetry.metadata.userId': 'u',
        'ai.model.id': 'm',
        'ai.usage.inputTokens': 30,
        'ai.usage.outputTokens': 2,
        'ai.prompt.messages': json([
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: [{ type: 'text', text: 'Weather in Oslo?' }] },
          {
            role: 'assistant',
            content: [{ type: 'tool-call', toolCallId: 'c1', toolName: 'weather', input: { city: 'Oslo' } }],
          },
          {
            role: 'tool',
            content: [
              {
                type: 'tool-result',
                toolCallId: 'c1',
                toolName: 'weather',
                output: { type: 'text', value: '4 degrees' },
              },
            ],
          },
        ]),
        'ai.response.text': 'Cold.',
      },
    },
    tool: {
      attributes: {
        'ai.operationId': 'ai.toolCall',
        'ai.toolCall.name': 'weather',
        'ai.toolCall.id': 'c1',
        'ai.toolCall.args': '{"city":"Oslo"}',
        'ai.toolCall.result': '4 degrees',
      },
    },
  },
  {
    name: 'OpenLLMetry',
    session: 's',
    user: 'u',
    usage: { input_tokens: 30, output_tokens: 2, total_tokens: 32 },
    model: {
      attributes: {
        'llm.request.type': 'chat',
        'traceloop.association.properties.session_id': 's',
        'traceloop.association.properties.user_id': 'u',
        'gen_ai.request.model': 'm',
        'gen_ai.usage.prompt_tokens': 30,
        'gen_ai.usage.completion_tokens': 2,
        'llm.usage.total_tokens': 32,
        'gen_ai.prompt.0.role': 'system',
        'gen_ai.prompt.0.content': 'Be brief.',
        'gen_ai.prompt.1.role': 'user',
        'gen_ai.prompt.1.content': json([{ type: 'text', text: 'Weather in Oslo?' }]),
        'gen_ai.prompt.2.role': 'assistant',
        'gen_ai.prompt.2.tool_calls.0.id': 'c1',
        'gen_ai.prompt.2.tool_calls.0.name': 'weather',
        'gen_ai.prompt.2.tool_calls.0.arguments': '{"city":"Oslo"}',
        'gen_ai.prompt.3.role': 'tool',
        'gen_ai.prompt.3.tool_call_id': 'c1',
        'gen_ai.prompt.3.content': '4 degrees',
        'gen_ai.completion.0.role': 'assistant',
        'gen_ai.completion.0.content': 'Cold.',
        'gen_ai.completion.0.finish_reason': 'stop',
      },
    },
    tool: {
      attributes: {
        'traceloop.span.kind': 'tool',
        'traceloop.entity.name': 'weather',
        'traceloop.entity.input': '{"city":"Oslo"}',
        'traceloop.entity.output': '4 degrees',
      },
    },
  },
  {
    name: 'Langfuse',
    session: 's',
    user: 'u',
    model: {
      attributes: {
        'langfuse.observation.type': 'generation',
        'langfuse.session.id': 's',
        'langfuse.user.id': 'u',
        'langfuse.observation.model.name': 'm',
        'langfuse.observation.input': json({ messages: ASKED }),
        'langfuse.observation.output': json({ role: 'assistant', content: 'Cold.' }),
      },
    },
    tool: {
      span: 'weather',
      attributes: {
        'langfuse.observation.type': 'tool',
        'langfuse.observation.input': '{"city":"Oslo"}',
        'langfuse.observation.output': '4 degrees',
      },
    },
  },
  {
    name: 'LangSmith',
    session: 's',
    model: {
      attributes: {
        'langsmith.span.kind': 'llm',
        'langsmith.metadata.thread_id': 's',
        'langsmith.metadata.ls_model_name': 'm',
        'gen_ai.prompt': json({ messages: ASKED }),
        'gen_ai.completion': json({ choices: [{ index: 0, message: ANSWERED[0] }] }),
      },
    },
    tool: {
      span: 'weather',
      attributes: {
        'langsmith.span.kind': 'tool',
        'gen_ai.prompt': '{"city":"Oslo"}',
        'gen_ai.completion': '4 degrees',
      },
    },
  },
  {
    name: 'ADK',
    session: 's',
    model: {
      span: 'call_llm',
      attributes: {
        'gcp.vertex.agent.session_id': 's',
        'gen_ai.request.model': 'm',
        'gcp.vertex.agent.llm_request': json({
          model: 'm',
          config: { system_instruction: 'Be brief.' },
          contents: [
            { role: 'user', parts: [{ text: 'Weather in Oslo?' }] },
            {
              role: 'model',
              parts: [{ function_call: { id: 'c1', name: 'weather', args: { city: 'Oslo' } } }],
            },
            {
              role: 'user',
              parts: [{ function_response: { id: 'c1', name: 'weather', response: '4 degrees' } }],
            },
          ],
        }),
        'gcp.vertex.agent.llm_response': json({ content: { role: 'model', parts: [{ text: 'Cold.' }] } }),
      },
    },
    tool: {
      span: 'execute_tool weather',
      attributes: {
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.call.id': 'c1',
        'gcp.vertex.agent.tool_call_args': '{"city":"Oslo"}',
        'gcp.vertex.agent.tool_response': '4 degrees',
      },
    },
  },
  {
    name: 'LangSmith of LangChain',
    session: 's',
    model: {
      attributes: {
        'langsmith.span.kind': 'llm',
        'gen_ai.operation.name': 'chat',
        'langsmith.metadata.thread_id': 's',
        'gen_ai.request.model': 'm',
        'gen_ai.prompt': json({
          messages: [
            [
              langChain('SystemMessage', { content: 'Be brief.', type: 'system' }),
              langChain('HumanMessage', { content: 'Weather in Oslo?', type: 'human' }),
              langChain('AIMessage', {
                content: '',
                type: 'ai',
                tool_calls: [{ name: 'weather', args: { city: 'Oslo' }, id: 'c1', type: 'tool_call' }],
              }),
              langChain('ToolMessage', { content: '4 degrees', type: 'tool', tool_call_id: 'c1' }),
            ],
          ],
        }),
        'gen_ai.completion': json({
          generations: [
            [
              {
                text: 'Cold.',
                type: 'ChatGeneration',
                message: langChain('AIMessage', { content: 'Cold.', type: 'ai' }),
              },
            ],
          ],
        }),
      },
    },
    tool: {
      span: 'weather',
      attributes: {
        'langsmith.span.kind': 'tool',
        'gen_ai.prompt': '{"city":"Oslo"}',
        'gen_ai.completion': json({ output: { content: '4 degrees', type: 'tool', tool_call_id: 'c1' } }),
      },
    },
  },
  {
    name: 'Strands',
    usage: { input_tokens: 30, output_tokens: 2 },
    model: {
      span: 'chat',
      attributes: {
        'gen_ai.operation.name': 'chat',
        'gen_ai.system': 'strands-agents',
        'gen_ai.request.model': 'm',
        'gen_ai.usage.prompt_tokens': 30,
        'gen_ai.usage.output_tokens': 2,
      },
      events: [
        { name: 'gen_ai.system.message', attributes: { content: '[{"text": "Be brief."}]' } },
        { name: 'gen_ai.user.message', attributes: { content: '[{"text": "Weather in Oslo?"}]' } },
        {
          name: 'gen_ai.assistant.message',
          attributes: {
            content: '[{"toolUse": {"toolUseId": "c1", "name": "weather", "input": {"city":"Oslo"}}}]',
          },
        },
        {
          name: 'gen_ai.tool.message',
          attributes: {
            content: '[{"toolResult": {"toolUseId": "c1", "content": [{"text": "4 degrees"}]}}]',
          },
        },
        { name: 'gen_ai.choice', attributes: { message: '[{"text": "Cold."}]', finish_reason: 'end_turn' } },
      ],
    },
    tool: {
      attributes: { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'weather' },
      events: [
        { name: 'gen_ai.tool.message', attributes: { content: '{"city":"Oslo"}', id: 'c1' } },
        { name: 'gen_ai.choice', attributes: { message: '[{"text": "4 degrees"}]', id: 'c1' } },
      ],
    },
  },
  {
    name: 'Logfire',
    session: 's',
    model: {
      span: 'Chat completion with {gen_ai.request.model!r}',
      attributes: {
        'logfire.msg_template': 'Chat completion with {gen_ai.request.model!r}',
        'session.id': 's',
        'gen_ai.request.model': 'm',
        input: json(ASKED),
        output: json(ANSWERED),
        request_data: json({ messages: [...ASKED, ...ANSWERED], model: 'm' }),
      },
    },
    tool: {
      span: 'Function: {name}',
      attributes: {
        'logfire.msg_template': 'Function: {name}',
        name: 'weather',
        input: '{"city":"Oslo"}',
        output: '4 degrees',
      },
    },
  },
]

function langChain(kind: string, kwargs: object): object {
  return { lc: 1, type: 'constructor', id: ['langchain', 'schema', 'messages', kind], kwargs }
}
