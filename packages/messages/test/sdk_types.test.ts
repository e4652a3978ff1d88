import type { MessageParam } from '@anthropic-ai/sdk/resources/messages'
import type { Content } from '@google/genai'
import type { ChatCompletionMessageParam } from 'openai/resources/chat/completions'
import type { ResponseInputItem } from 'openai/resources/responses/responses'
import { describe, expectTypeOf, it } from 'vitest'
import type { AnthropicMessage, GeminiMessage, OpenAiMessage, ResponsesItem } from '../src/index.js'

// The compiler makes these checks (`npm run types`); when the tests run, nothing of the SDKs is loaded.
describe('what the renderers write', () => {
  it('is what the OpenAI SDK takes in a request', () => {
    expectTypeOf<OpenAiMessage>().toExtend<ChatCompletionMessageParam>()
  })

  it('is what the OpenAI SDK takes as an item of input', () => {
    expectTypeOf<ResponsesItem>().toExtend<ResponseInputItem>()
  })

  it('is what the Anthropic SDK takes in a request', () => {
    expectTypeOf<AnthropicMessage>().toExtend<MessageParam>()
  })

  it('is what the Gemini SDK takes in a request', () => {
    expectTypeOf<GeminiMessage>().toExtend<Content>()
  })
})
