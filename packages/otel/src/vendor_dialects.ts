import type { Dialect } from './dialect.js'

export const MLFLOW: Dialect = {
  name: 'MLflow',
  operation: {
    'mlflow.spanType': {
      CHAT_MODEL: 'model',
      LLM: 'model',
      TOOL: 'tool',
      AGENT: 'agent',
      CHAIN: 'step',
      RETRIEVER: 'retrieval',
      RERANKER: 'retrieval',
      EMBEDDING: 'embeddings',
    },
  },
  model: ['mlflow.llm.model', 'mlflow.spanInputs#model', 'mlflow.spanOutputs#model'],
  usage: {
    input_tokens: ['mlflow.chat.tokenUsage#input_tokens'],
    output_tokens: ['mlflow.chat.tokenUsage#output_tokens'],
    total_tokens: ['mlflow.chat.tokenUsage#total_tokens'],
  },
  tool: { arguments: ['mlflow.spanInputs'], result: ['mlflow.spanOutputs'] },
  input: [{ json: 'mlflow.spanInputs' }],
  output: [{ json: 'mlflow.spanOutputs' }],
}

export const BRAINTRUST: Dialect = {
  name: 'Braintrust',
  operation: {
    'braintrust.span_attributes#type': { llm: 'model', tool: 'tool', task: 'step', function: 'step' },
  },
  model: ['braintrust.metadata#model'],
  usage: {
    input_tokens: ['braintrust.metrics#prompt_tokens'],
    output_tokens: ['braintrust.metrics#completion_tokens'],
    total_tokens: ['braintrust.metrics#tokens'],
    cached_tokens: ['braintrust.metrics#prompt_cached_tokens'],
  },
  tool: {
    name: ['braintrust.span_attributes#name'],
    arguments: ['braintrust.input_json', 'braintrust.input'],
    result: ['braintrust.output_json', 'braintrust.output'],
  },
  input: [{ json: 'braintrust.input_json' }, { json: 'braintrust.input' }],
  output: [{ json: 'braintrust.output_json' }, { json: 'braintrust.output' }],
}

export const GENKIT: Dialect = {
  name: 'Genkit',
  operation: {
    'genkit:metadata:subtype': { model: 'model', tool: 'tool', flow: 'agent', embedder: 'embeddings' },
  },
  usage: {
    input_tokens: ['genkit:output#usage.inputTokens'],
    output_tokens: ['genkit:output#usage.outputTokens'],
    total_tokens: ['genkit:output#usage.totalTokens'],
  },
  tool: { name: ['genkit:name'], arguments: ['genkit:input'], result: ['genkit:output'] },
  input: [{ json: 'genkit:input' }],
  output: [{ json: 'genkit:output' }],
}

export const HAYSTACK: Dialect = {
  name: 'Haystack',
  operation: {
    'haystack.component.type': {
      AmazonBedrockChatGenerator: 'model',
      AnthropicChatGenerator: 'model',
      AzureOpenAIChatGenerator: 'model',
      CohereChatGenerator: 'model',
      GoogleGenAIChatGenerator: 'model',
      HuggingFaceAPIChatGenerator: 'model',
      MistralChatGenerator: 'model',
      OllamaChatGenerator: 'model',
      OpenAIChatGenerator: 'model',
      OpenAIResponsesChatGenerator: 'model',
      OpenRouterChatGenerator: 'model',
      Agent: 'agent',
    },
  },
  model: [
    'haystack.component.output#replies.0.meta.model',
    'haystack.component.output#replies.0._meta.model',
  ],
  input: [{ json: 'haystack.component.input' }],
  output: [{ json: 'haystack.component.output' }],
}

export const SPRING_AI: Dialect = {
  name: 'Spring AI',
  operation: { 'spring.ai.kind': { tool_call: 'tool', advisor: 'step', chat_client: 'agent' } },
  tool: {
    name: ['spring.ai.tool.definition.name'],
    arguments: ['spring.ai.tool.call.arguments'],
    result: ['spring.ai.tool.call.result'],
  },
}

/** Small differences of others, each in its own names. */
export const OTHERS: Dialect = {
  name: 'AgentOps, Langtrace and Mastra',
  operation: {
    'agentops.span.kind': { llm: 'model', tool: 'tool', agent: 'agent', task: 'step', session: 'agent' },
    'langtrace.service.type': { llm: 'model', framework: 'step' },
  },
  model: ['llm.model'],
  tool: {
    arguments: ['tool.parameters', 'mastra.tool_call.input'],
    result: ['tool.result', 'mastra.tool_call.output'],
  },
  input: [{ json: 'llm.prompts' }],
  output: [{ json: 'llm.responses' }],
}

/** Coding agents that report by logs, as Claude Code does: `event.name` says what happened. */
export const CODING_AGENTS: Dialect = {
  name: 'Claude Code',
  operation: {
    'event.name': {
      api_request: 'model',
      api_error: 'model',
      tool_result: 'tool',
      'claude_code.api_request': 'model',
      'claude_code.api_error': 'model',
      'claude_code.tool_result': 'tool',
      'codex.tool_result': 'tool',
      'gemini_cli.api_response': 'model',
      'gemini_cli.api_error': 'model',
      'gemini_cli.tool_call': 'tool',
      'qwen-code.api_response': 'model',
      'qwen-code.api_error': 'model',
      'qwen-code.tool_call': 'tool',
    },
    // Codex says by this event alone what an answer used.
    'event.kind': { 'response.completed': 'model' },
    'span.type': { llm_request: 'model', tool: 'tool', interaction: 'agent' },
  },
  model: ['model'],
  usage: {
    input_tokens: ['input_tokens', 'input_token_count'],
    output_tokens: ['output_tokens', 'output_token_count'],
    total_tokens: ['total_token_count'],
    cached_tokens: ['cache_read_tokens', 'cached_token_count', 'cached_content_token_count'],
    cache_write_tokens: ['cache_creation_tokens'],
    reasoning_tokens: ['reasoning_token_count', 'thoughts_token_count'],
  },
  tool: {
    name: ['tool_name', 'function_name'],
    id: ['tool_use_id', 'call_id'],
    arguments: ['tool_input', 'tool_parameters', 'function_args', 'arguments', 'full_command'],
    result: ['tool_output', 'tool_result', 'output'],
  },
}
