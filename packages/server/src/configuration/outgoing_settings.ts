import { type Setting, SWITCH } from './setting.js'

/** The settings for what the service itself calls: receivers of webhooks, and the model that learning spaces reflect with. */
export const OUTGOING_SETTINGS = {
  webhooks_to_private: {
    variable: 'ANNALS_WEBHOOKS_TO_PRIVATE',
    meaning: 'true: webhooks may go to loopback, link-local and private addresses as well',
    ...SWITCH,
  },
  model_url: {
    variable: 'ANNALS_MODEL_URL',
    meaning:
      'base URL of an OpenAI-compatible API with a model for learning, such as https://api.openai.com/v1; unset: spaces learn by rules alone',
    default: undefined,
    pattern: /^https?:\/\/[^@]+$/,
    takes: 'a URL that begins with http:// or https://, without a user name',
  },
  model: {
    variable: 'ANNALS_MODEL',
    meaning: 'name of that model; set together with ANNALS_MODEL_URL',
    default: undefined,
    pattern: /^[\x21-\x7e]{1,200}$/,
    takes: '1 to 200 visible ASCII characters',
  },
  model_key: {
    variable: 'ANNALS_MODEL_KEY',
    meaning: 'API key for the model',
    default: undefined,
    pattern: /^[\x21-\x7e]{1,1000}$/,
    takes: '1 to 1000 visible ASCII characters',
  },
  model_ms_max: {
    variable: 'ANNALS_MODEL_MS_MAX',
    meaning: 'longest time that the model may take for an answer',
    unit: 'ms',
    default: 60_000,
    min: 100,
    max: 600_000,
  },
  model_tokens_per_day_max: {
    variable: 'ANNALS_MODEL_TOKENS_PER_DAY_MAX',
    meaning: 'most tokens of the model for each project in 24 hours; a project may have its own limit',
    default: 1_000_000,
    min: 0,
    max: 1_000_000_000_000,
  },
} as const satisfies Record<string, Setting>
