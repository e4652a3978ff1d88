import type { Dialect } from './dialect.js'
import { BRAINTRUST, CODING_AGENTS, GENKIT, HAYSTACK, MLFLOW, OTHERS, SPRING_AI } from './vendor_dialects.js'

const GEN_AI: Dialect = {
  name: 'OpenTelemetry GenAI',
  operation: {
    'gen_ai.operation.name': {
      chat: 'model',
      'chat.completions': 'model',
      'text.completions': 'model',
      text_completion: 'model',
      generate_content: 'model',
      call_llm: 'model',
      execute_tool: 'tool',
      invoke_agent: 'agent',
      create_agent: 'agent',
      invoke_workflow: 'agent',
      agent_step: 'step',
      process_thread_run: 'agent',
      embeddings: 'embeddings',
      retrieval: 'retrieval',
    },
  },
  agent: ['gen_ai.agent.name'],
  model: ['gen_ai.response.model', 'gen_ai.request.model'],
  provider: ['gen_ai.provider.name', 'gen_ai.system'],
  usage: {
    input_tokens: ['gen_ai.usage.input_tokens', 'gen_ai.usage.prompt_tokens'],
    output_tokens: ['gen_ai.usage.output_tokens', 'gen_ai.usage.completion_tokens'],
    total_tokens: ['gen_ai.usage.total_tokens'],
    cached_tokens: [
      'gen_ai.usage.cache_read.input_tokens',
      'gen_ai.usage.cache_read_input_tokens',
      'gen_ai.usage.cached_tokens',
      'gen_ai.usage.details.cached_tokens',
      'gen_ai.usage.details.cache_read_tokens',
    ],
    cache_write_tokens: [
      'gen_ai.usage.cache_creation.input_tokens',
      'gen_ai.usage.cache_creation_input_tokens',
      'gen_ai.usage.details.cache_write_tokens',
    ],
    reasoning_tokens: [
      'gen_ai.usage.reasoning.output_tokens',
      'gen_ai.usage.reasoning_tokens',
      'gen_ai.usage.details.reasoning_tokens',
    ],
  },
  tool: {
    name: ['gen_ai.tool.name'],
    id: ['gen_ai.tool.call.id'],
    arguments: ['gen_ai.tool.call.arguments'],
    result: ['gen_ai.tool.call.result'],
  },
  system: [{ json: 'gen_ai.system_instructions' }],
  input: [{ json: 'gen_ai.input.messages' }],
  output: [{ json: 'gen_ai.output.messages' }],
}

/** As it was until 2025: messages as events of the span. */
const GEN_AI_EVENTS: Dialect = {
  name: 'OpenTelemetry GenAI, with events',
  input: [{ events: 'span' }],
  output: [{ events: 'span' }],
}

const PYDANTIC_AI: Dialect = {
  name: 'Pydantic AI',
  named: { 'running tool': 'tool', 'agent run': 'agent' },
  agent: ['agent_name'],
  model: ['model_name'],
  tool: { arguments: ['tool_arguments'], result: ['tool_response'] },
  input: [{ events: 'events' }],
  output: [{ events: 'events' }],
}

const OPENINFERENCE: Dialect = {
  name: 'OpenInference',
  operation: {
    'openinference.span.kind': {
      LLM: 'model',
      TOOL: 'tool',
      AGENT: 'agent',
      CHAIN: 'step',
      EMBEDDING: 'embeddings',
      RETRIEVER: 'retrieval',
      RERANKER: 'retrieval',
    },
  },
  agent: ['agent.name', 'graph.node.name'],
  model: ['llm.model_name'],
  provider: ['llm.provider', 'llm.system'],
  usage: {
    input_tokens: ['llm.token_count.prompt'],
    output_tokens: ['llm.token_count.completion'],
    total_tokens: ['llm.token_count.total'],
    cached_tokens: ['llm.token_count.prompt_details.cache_read'],
    cache_write_tokens: ['llm.token_count.prompt_details.cache_write'],
    reasoning_tokens: ['llm.token_count.completion_details.reasoning'],
  },
  tool: {
    name: ['tool.name'],
    id: ['tool.id', 'tool_call.id'],
    // The parameters are the tool's schema, but for some.
    arguments: ['input.value', 'tool.parameters'],
    result: ['output.value'],
  },
  input: [
    { flat: 'llm.input_messages', within: 'message' },
    { flat: 'llm.prompts', within: 'prompt' },
    { json: 'input.value' },
  ],
  output: [
    { flat: 'llm.output_messages', within: 'message' },
    { flat: 'llm.choices', within: 'completion' },
    { json: 'output.value' },
  ],
  repeats: ['input.value', 'output.value'],
}

const AI_SDK: Dialect = {
  name: 'AI SDK',
  operation: {
    'ai.operationId': {
      'ai.generateText.doGenerate': 'model',
      'ai.streamText.doStream': 'model',
      'ai.generateObject.doGenerate': 'model',
      'ai.streamObject.doStream': 'model',
      'ai.generateText': 'agent',
      'ai.streamText': 'agent',
      'ai.generateObject': 'agent',
      'ai.streamObject': 'agent',
      'ai.toolCall': 'tool',
      'ai.embed': 'embeddings',
      'ai.embedMany': 'embeddings',
      'ai.embed.doEmbed': 'embeddings',
      'ai.embedMany.doEmbed': 'embeddings',
    },
  },
  agent: ['ai.telemetry.functionId', 'ai.telemetry.metadata.agent'],
  model: ['ai.response.model', 'ai.model.id'],
  provider: ['ai.model.provider'],
  usage: {
    input_tokens: ['ai.usage.inputTokens', 'ai.usage.promptTokens'],
    output_tokens: ['ai.usage.outputTokens', 'ai.usage.completionTokens'],
    total_tokens: ['ai.usage.totalTokens'],
    cached_tokens: ['ai.usage.cachedInputTokens', 'ai.usage.inputTokenDetails.cacheReadTokens'],
    cache_write_tokens: ['ai.usage.inputTokenDetails.cacheWriteTokens'],
    reasoning_tokens: ['ai.usage.reasoningTokens', 'ai.usage.outputTokenDetails.reasoningTokens'],
  },
  tool: {
    name: ['ai.toolCall.name'],
    id: ['ai.toolCall.id'],
    arguments: ['ai.toolCall.args', 'ai.toolCall.input'],
    result: ['ai.toolCall.result', 'ai.toolCall.output'],
  },
  input: [{ json: 'ai.prompt.messages' }],
  output: [
    {
      answer: {
        text: 'ai.response.text',
        tool_calls: 'ai.response.toolCalls',
        object: 'ai.response.object',
        reasoning: 'ai.response.reasoning',
      },
    },
  ],
}

const OPENLLMETRY: Dialect = {
  name: 'OpenLLMetry',
  operation: {
    'llm.request.type': { chat: 'model', completion: 'model', embedding: 'embeddings', rerank: 'retrieval' },
    'traceloop.span.kind': { tool: 'tool', agent: 'agent', workflow: 'agent', task: 'step' },
  },
  agent: ['traceloop.entity.name', 'traceloop.workflow.name'],
  usage: {
    input_tokens: ['llm.usage.prompt_tokens'],
    output_tokens: ['llm.usage.completion_tokens'],
    total_tokens: ['llm.usage.total_tokens'],
  },
  tool: {
    name: ['traceloop.entity.name'],
    arguments: ['traceloop.entity.input'],
    result: ['traceloop.entity.output'],
  },
  input: [{ flat: 'gen_ai.prompt' }, { flat: 'llm.prompts' }],
  output: [{ flat: 'gen_ai.completion' }, { flat: 'llm.completions' }],
}

const LANGFUSE: Dialect = {
  name: 'Langfuse',
  operation: {
    'langfuse.observation.type': {
      generation: 'model',
      tool: 'tool',
      agent: 'agent',
      chain: 'step',
      span: 'step',
      retriever: 'retrieval',
      embedding: 'embeddings',
    },
  },
  model: ['langfuse.observation.model.name'],
  usage: {
    input_tokens: ['langfuse.observation.usage_details#input'],
    output_tokens: ['langfuse.observation.usage_details#output'],
    total_tokens: ['langfuse.observation.usage_details#total'],
  },
  tool: { arguments: ['langfuse.observation.input'], result: ['langfuse.observation.output'] },
  input: [{ json: 'langfuse.observation.input' }],
  output: [{ json: 'langfuse.observation.output' }],
}

const LANGSMITH: Dialect = {
  name: 'LangSmith',
  operation: {
    'langsmith.span.kind': {
      llm: 'model',
      tool: 'tool',
      agent: 'agent',
      chain: 'step',
      retriever: 'retrieval',
      embedding: 'embeddings',
    },
  },
  model: ['langsmith.metadata.ls_model_name'],
  provider: ['langsmith.metadata.ls_provider'],
  tool: { arguments: ['gen_ai.prompt'], result: ['gen_ai.completion'] },
  input: [{ json: 'gen_ai.prompt' }],
  output: [{ json: 'gen_ai.completion' }],
}

const ADK: Dialect = {
  name: 'ADK',
  named: { call_llm: 'model', execute_tool: 'tool', invoke_agent: 'agent', agent_run: 'agent' },
  tool: {
    arguments: ['gcp.vertex.agent.tool_call_args'],
    result: ['gcp.vertex.agent.tool_response'],
  },
  input: [{ gemini: 'gcp.vertex.agent.llm_request' }],
  output: [{ gemini: 'gcp.vertex.agent.llm_response' }],
}

/** Of frameworks whose spans it makes itself; those of a model's client follow OpenTelemetry's conventions. */
const LOGFIRE: Dialect = {
  name: 'Logfire',
  when: 'logfire.msg_template',
  named: {
    'Chat completion with ': 'model',
    'Chat Completion with ': 'model',
    'Responses API': 'model',
    'Function: ': 'tool',
    'Agent run: ': 'agent',
  },
  agent: ['agent_name'],
  tool: { name: ['name'], arguments: ['input'], result: ['output'] },
  input: [{ json: 'input' }, { json: 'request_data' }],
  output: [{ json: 'output' }, { json: 'response_data' }],
  repeats: ['request_data'],
}

export const DIALECTS: readonly Dialect[] = [
  GEN_AI,
  OPENINFERENCE,
  AI_SDK,
  PYDANTIC_AI,
  OPENLLMETRY,
  ADK,
  LANGSMITH,
  LANGFUSE,
  LOGFIRE,
  MLFLOW,
  BRAINTRUST,
  GENKIT,
  HAYSTACK,
  SPRING_AI,
  OTHERS,
  GEN_AI_EVENTS,
  CODING_AGENTS,
]

/** What names the session, in the order in which they count. */
export const SESSION_ATTRIBUTES = [
  'gen_ai.conversation.id',
  'session.id',
  'langfuse.session.id',
  'langsmith.metadata.thread_id',
  'langsmith.metadata.session_id',
  'langsmith.metadata.conversation_id',
  'langsmith.trace.session_id',
  'traceloop.association.properties.session_id',
  'traceloop.association.properties.thread_id',
  'ai.telemetry.metadata.sessionId',
  'ai.telemetry.metadata.threadId',
  'gcp.vertex.agent.session_id',
  // Codex.
  'conversation.id',
  'gen_ai.thread.id',
  'wandb.thread_id',
]

export const USER_ATTRIBUTES = [
  'user.id',
  'enduser.id',
  'langfuse.user.id',
  'langsmith.metadata.user_id',
  'traceloop.association.properties.user_id',
  'ai.telemetry.metadata.userId',
]

export const ENVIRONMENT_ATTRIBUTES = [
  'deployment.environment.name',
  'deployment.environment',
  'langfuse.environment',
]
