import { RATE_LIMIT_MAX } from '../limits.js'
import type { Setting } from './setting.js'

/** The settings for rate limits. */
export const RATE_SETTINGS = {
  rate_limit_per_second: {
    variable: 'ANNALS_RATE_LIMIT_PER_SECOND',
    meaning:
      'requests a second that each API key may make at each node; 0: any number; a project may have its own',
    default: 0,
    min: 0,
    max: RATE_LIMIT_MAX,
  },
  address_rate_limit_per_second: {
    variable: 'ANNALS_ADDRESS_RATE_LIMIT_PER_SECOND',
    meaning: 'requests a second that each address may make at each node, with whatever key; 0: any number',
    default: 0,
    min: 0,
    max: RATE_LIMIT_MAX,
  },
  address_refusals_per_second: {
    variable: 'ANNALS_ADDRESS_REFUSALS_PER_SECOND',
    meaning:
      'requests a second that each address may make with keys that are not valid; beyond them, keys that the node has not seen before get 429 unseen; 0: any number',
    default: 0,
    min: 0,
    max: RATE_LIMIT_MAX,
  },
  trusted_proxies: {
    variable: 'ANNALS_TRUSTED_PROXIES',
    meaning:
      'addresses or networks of proxies, separated by commas, whose X-Forwarded-For says where a request comes from; unset: none',
    default: undefined,
    pattern: /^[\da-fA-F.:/]+(?:,[\da-fA-F.:/]+)*$/,
    takes: 'addresses or networks such as 10.0.0.0/8,::1, separated by commas',
  },
} as const satisfies Record<string, Setting>
