import type { MessageFormat } from '../../src/index.js'

/** Conversations of parts and items that public reports tell of, by what is in them. */
export const REPORTED_ITEMS: Record<string, [MessageFormat, object[]]> = {
  'code that LangChain gave a type': [
    'gemini',
    [
      { role: 'user', parts: [{ text: 'x' }] },
      {
        role: 'model',
        parts: [
          { type: 'executableCode', executableCode: { language: 'PYTHON', code: '1' } },
          { type: 'codeExecutionResult', codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1' } },
          { text: 'y' },
        ],
      },
    ],
  ],
  'an item’s output before the item': [
    'responses',
    [
      { role: 'user', content: 'x' },
      { type: 'function_call_output', call_id: 'a', output: 'done' },
      { type: 'function_call', id: 'fc_1', call_id: 'a', name: 'look', arguments: '{}' },
    ],
  ],
  'nulls of OpenAI’s SDK': [
    'responses',
    [
      { role: 'user', content: 'x' },
      {
        type: 'web_search_call',
        id: 'ws_1',
        status: 'completed',
        action: { type: 'search', query: 'q', queries: null, sources: null },
      },
      {
        type: 'mcp_call',
        id: 'mcp_1',
        name: 'f',
        arguments: '{}',
        server_label: 's',
        output: 'r',
        error: null,
        status: null,
      },
      {
        type: 'code_interpreter_call',
        id: 'ci_1',
        container_id: 'c',
        code: null,
        outputs: null,
        status: 'completed',
      },
    ],
  ],
  'searches and a compaction whose ids another service made': [
    'responses',
    [
      { role: 'user', content: 'x' },
      {
        type: 'web_search_call',
        id: 'call_00_A8',
        status: 'completed',
        action: { type: 'search', query: 'q' },
      },
      { type: 'tool_search_call', id: 'fc_1', call_id: 't', execution: 'client', arguments: null },
      { type: 'tool_search_output', id: 'tso_1', call_id: 't', execution: 'client', status: 'completed' },
      { type: 'message', id: 'resp_1_msg', role: 'assistant', content: [{ type: 'output_text', text: 'y' }] },
      { role: 'user', content: 'z' },
      { type: 'compaction', id: 'fc_2', encrypted_content: 'e' },
    ],
  ],
  'items that lack what the API wants of them': [
    'responses',
    [
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'x', cache_control: { type: 'ephemeral' } },
          { type: 'input_image', image_url: '' },
        ],
      },
      { type: 'tool_search_call', call_id: 't', execution: 'client', arguments: '{"query":"q"}' },
      { type: 'tool_search_output', call_id: 't', tools: null },
      { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { query: 'q' } },
      {
        type: 'local_shell_call',
        id: 'lsh_1',
        call_id: 's',
        status: 'completed',
        action: { type: 'exec', command: ['ls'], env: null },
      },
      { type: 'local_shell_call_output', id: 's', output: 'done' },
      { type: 'custom_tool_call', call_id: 'c', name: 'look' },
      { type: 'custom_tool_call_output', call_id: 'c', output: 'done' },
      { type: 'compaction', id: 'cmp_1', encrypted_content: null },
    ],
  ],
  'reasoning with its text, as other services give it': [
    'responses',
    [
      { role: 'user', content: 'x' },
      { type: 'reasoning', id: 'rs_1', summary: [], content: [{ type: 'reasoning_text', text: 'so' }] },
      { type: 'function_call', id: 'fc_1', call_id: 'a', name: 'look', arguments: '{}' },
      { type: 'function_call_output', call_id: 'a', output: 'done' },
      {
        type: 'reasoning',
        id: 'rs_2',
        summary: [],
        content: [{ type: 'reasoning_text', text: 'so' }],
        encrypted_content: 'e',
      },
      { type: 'message', id: 'msg_1', role: 'assistant', content: [{ type: 'output_text', text: 'y' }] },
    ],
  ],
}
