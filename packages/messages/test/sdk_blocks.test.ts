import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { MESSAGE_FORMATS, type MessageFormat, readMessage } from '../src/index.js'
import { isValidFor } from './message_schemas.js'
import { type SdkSample, sdkSamples } from './sdk_samples.js'
import { converted } from './stored_run.js'

const chat = "import('openai/resources/chat/completions')"
const response = "import('openai/resources/responses/responses')"
const conversation = "import('openai/resources/conversations')"
const anthropic = "import('@anthropic-ai/sdk/resources/messages')"
const beta = "import('@anthropic-ai/sdk/resources/beta/messages')"
const part = "import('@google/genai').Part"

/** What the SDKs have for messages, in requests and in answers. */
const TYPES: Partial<Record<MessageFormat, string[]>> = {
  openai: [`${chat}.ChatCompletionMessageParam`, `${chat}.ChatCompletionMessage`],
  responses: [
    `${response}.ResponseInputItem`,
    `${response}.ResponseOutputItem`,
    `${conversation}.ConversationItem`,
  ],
  anthropic: [
    `${anthropic}.MessageParam`,
    `${anthropic}.Message`,
    `${beta}.BetaMessageParam`,
    `${beta}.BetaMessage`,
  ],
  gemini: [
    "import('@google/genai').Content",
    // All fields of a part are optional; each by itself is a type of part.
    `{ [Field in keyof ${part}]-?: { role: 'model', parts: [Pick<${part}, Field>] } }[keyof ${part}]`,
  ],
}

/** What no single field of a type shows. */
const FURTHER: Partial<Record<MessageFormat, SdkSample[]>> = {
  anthropic: [{ is_full: true, value: { role: 'system', output_config: { effort: 'low' } } }],
}

describe.each(Object.entries(TYPES) as [MessageFormat, string[]][])(
  'every type of block that the SDK has for %s',
  { timeout: 120_000 },
  (format, types) => {
    const samples = [...sdkSamples(types), ...(FURTHER[format] ?? [])]

    it('is accepted, and comes back key for key', () => {
      expect(samples.length).toBeGreaterThan(20)
      for (const { value } of samples) {
        expect(() => readMessage(format, value), JSON.stringify(value)).not.toThrow()
        expect(converted(format, format, structuredClone(value))).toStrictEqual([value])
      }
    })

    it('becomes what other providers take', () => {
      for (const { value } of samples)
        for (const to of MESSAGE_FORMATS.filter((other) => other !== format))
          for (const item of converted(format, to, value))
            expect(isValidFor(to, item), JSON.stringify({ value, item })).toBe(true)
    })

    it('is converted, or named in the documentation as what has no counterpart', () => {
      const kept = samples
        .filter(({ is_full }) => is_full)
        .flatMap(({ value }) => readMessage(format, value).parts)
        .flatMap((part) => (part.type === 'data' ? [part.meta.data_type] : []))
      expect([...new Set(kept)].sort()).toEqual(withoutCounterpart(format))
    })
  },
)

/** The row of a format in docs/messages.md. */
function withoutCounterpart(format: MessageFormat): string[] {
  const page = readFileSync(new URL('../../../docs/messages.md', import.meta.url), 'utf8')
  const section = page.split('\n## What has no counterpart\n')[1]!.split('\n## ')[0]!
  const row = section.split('\n').find((line) => line.startsWith(`| \`${format}\` |`))!
  return [...row.split('|')[2]!.matchAll(/`([^`]+)`/g)].map(([, type]) => type!)
}
