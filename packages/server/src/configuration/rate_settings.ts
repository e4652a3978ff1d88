import { RATE_LIMIT_MAX } from '../limits.js'
import type { Setting } from './setting.js'

/** The settings for rate limits. */
export const RATE_SETTINGS = {
  rate_limit_per_second: {
    variable: 'ANNALS_RATE_LIMIT_PER_SECOND',
    meaning:
      'most requests per second of each API key at each node; 0: unlimited; a project may have its own limit',
    default: 0,
    min: 0,
    max: RATE_LIMIT_MAX,
  },
  address_rate_limit_per_second: {
    variable: 'ANNALS_ADDRESS_RATE_LIMIT_PER_SECOND',
    meaning: 'most requests per second of each address at each node, whatever their key; 0: unlimited',
    default: 0,
    min: 0,
    max: RATE_LIMIT_MAX,
  },
  address_refusals_per_second: {
    variable: 'ANNALS_ADDRESS_REFUSALS_PER_SECOND',
    meaning:
      'most requests per second of each address with invalid keys; beyond that, the address gets 429 for keys that the node has not recently seen to be valid; 0: unlimited',
    default: 0,
    min: 0,
    max: RATE_LIMIT_MAX,
  },
  trusted_proxies: {
    variable: 'ANNALS_TRUSTED_PROXIES',
    meaning:
      'addresses or networks of proxies, separated by commas, whose X-Forwarded-For tells where a request comes from; unset: none',
    default: undefined,
    pattern: /^[\da-fA-F.:/]+(?:,[\da-fA-F.:/]+)*$/,
    takes: 'addresses or networks such as 10.0.0.0/8,::1, separated by commas',
  },
} as const satisfies Record<string, Setting>
