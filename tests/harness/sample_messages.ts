const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }
type Sample = [format: string, role: 'user' | 'assistant', parts: object[], blob: object]
/** Messages of every format, with the parts that they become. */
export const SAMPLE_MESSAGES: Sample[] = [
  [
    'openai',
    'user',
    [{ type: 'text', text: 'Hi' }],
    { role: 'user', content: 'Hi', name: 'ada', x: { y: [null] } },
  ],
  ['openai', 'user', [{ type: 'text', text: 'Be kind' }], { role: 'system', content: 'Be kind' }],
  ['openai', 'user', [{ type: 'text', text: 'Be kind' }], { role: 'developer', content: 'Be kind' }],
  [
    'openai',
    'assistant',
    [{ type: 'tool-call', meta: { id: 'call_1', name: 'f', arguments: '{"a":1}' } }],
    { role: 'assistant', content: null, refusal: null, tool_calls: [call] },
  ],
  [
    'openai',
    'user',
    [{ type: 'tool-result', text: '42', meta: { tool_call_id: 'call_1' } }],
    { role: 'tool', tool_call_id: 'call_1', content: '42' },
  ],
  [
    'openai',
    'user',
    [
      { type: 'text', text: 'See' },
      { type: 'image', meta: { url: 'https://e.com/a.png' } },
    ],
    {
      role: 'user',
      content: [
        { type: 'text', text: 'See' },
        { type: 'image_url', image_url: { url: 'https://e.com/a.png', detail: 'low' } },
      ],
    },
  ],
  [
    'openai',
    'assistant',
    [{ type: 'text' }, { type: 'tool-call', meta: { id: 'toolu_1', name: 'find', arguments: '{}' } }],
    {
      role: 'assistant',
      content: "I'll search.",
      reasoning: null,
      tool_calls: [{ id: 'toolu_1', index: 0, type: 'function', function: { name: 'find' } }],
    },
  ],
  ['anthropic', 'user', [{ type: 'text', text: 'Hi' }], { role: 'user', content: 'Hi', x: 1 }],
  [
    'anthropic',
    'assistant',
    [{ type: 'tool-call', meta: { id: 't1', name: 'f', arguments: '{"a":1}' } }],
    { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'f', input: '{"a":1}' }] },
  ],
  [
    'responses',
    'user',
    [{ type: 'text', text: 'x' }],
    {
      type: 'message',
      id: 'm1',
      role: 'unknown',
      status: 'completed',
      content: [{ type: 'text', text: 'x' }],
    },
  ],
  [
    'anthropic',
    'assistant',
    [
      { type: 'thinking', text: 'Hm', meta: { signature: 's' } },
      { type: 'redacted_thinking', meta: { data: 'd' } },
      { type: 'tool-call', meta: { id: 'toolu_1', name: 'f' } },
    ],
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'Hm', signature: 's' },
        { type: 'redacted_thinking', data: 'd' },
        { type: 'tool_use', id: 'toolu_1', name: 'f', input: { a: 1.5 } },
      ],
    },
  ],
  [
    'anthropic',
    'user',
    [{ type: 'tool-result', meta: { tool_call_id: 'toolu_1', is_error: true } }],
    {
      role: 'user',
      content: [
        {
          type: 'tool_result',
          tool_use_id: 'toolu_1',
          is_error: true,
          content: [{ type: 'text', text: 'no', cache_control: { type: 'ephemeral' } }],
        },
      ],
    },
  ],
  ['gemini', 'user', [{ type: 'text', text: 'Hi' }], { role: 'user', parts: [{ text: 'Hi', x: true }] }],
  [
    'gemini',
    'assistant',
    [{ type: 'tool-call', meta: { name: 'f' } }],
    { role: 'model', parts: [{ functionCall: { name: 'f', args: { a: 1 } }, thoughtSignature: 'c2ln' }] },
  ],
  [
    'gemini',
    'user',
    [{ type: 'tool-result', meta: { name: 'f' } }],
    { role: 'user', parts: [{ functionResponse: { name: 'f', response: { output: '42' } } }] },
  ],
  [
    'acontext',
    'user',
    [{ type: 'text', text: 'Hi' }],
    { role: 'user', parts: [{ type: 'text', text: 'Hi' }] },
  ],
  [
    'acontext',
    'assistant',
    [{ type: 'tool-call', meta: { id: 'c', name: 'f', arguments: '{}' } }],
    {
      role: 'assistant',
      parts: [{ type: 'tool-call', meta: { id: 'c', name: 'f', arguments: '{}', type: 'function' } }],
    },
  ],
  ['responses', 'user', [{ type: 'text', text: 'Hi' }], { role: 'user', content: 'Hi', x: 1.5 }],
  [
    'responses',
    'assistant',
    [{ type: 'tool-call', meta: { id: 'c', name: 'f', arguments: '{' } }],
    { type: 'function_call', id: 'fc_1', call_id: 'c', name: 'f', arguments: '{', status: 'completed' },
  ],
  [
    'responses',
    'user',
    [{ type: 'tool-result', text: '42', meta: { tool_call_id: 'c' } }],
    { type: 'function_call_output', call_id: 'c', output: '42' },
  ],
  [
    'responses',
    'assistant',
    [{ type: 'data', meta: { data_type: 'web_search_call' } }],
    { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'x' } },
  ],
]

/** Messages that say nothing. */
export const EMPTY_MESSAGES: Array<[string, object]> = [
  ['openai', { role: 'user', content: '' }],
  ['openai', { role: 'user', content: [] }],
  ['openai', { role: 'assistant', content: null }],
  ['openai', { role: 'assistant' }],
  ['openai', { role: 'assistant', content: null, refusal: 'No.' }],
  ['anthropic', { role: 'user', content: '' }],
  ['anthropic', { role: 'assistant', content: [] }],
  ['gemini', { role: 'model', parts: [] }],
  ['gemini', { role: 'model' }],
  ['gemini', {}],
  ['anthropic', { role: 'system', output_config: { effort: 'low' } }],
  ['responses', { type: 'configuration_update', reasoning: { effort: 'low' } }],
  ['gemini', { parts: [{ text: 'no role' }] }],
  ['acontext', { role: 'assistant', parts: [] }],
  ['responses', { role: 'user', content: '' }],
  ['responses', { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAAAB' }],
  ['responses', { id: 'msg_1' }],
]
