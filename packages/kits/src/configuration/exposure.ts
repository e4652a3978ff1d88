import { isIP } from 'node:net'
import { deflateRawSync } from 'node:zlib'
import type { Config } from './config.js'

/** Least bytes of a token after removing repetitions: 32 random hexadecimal digits keep nearly all of theirs. */
const TOKEN_BYTES_MIN = 24

/** Warnings about how far a service is exposed, in sentences; none if all is well. */
export function exposureWarnings(config: Config): string[] {
  const warnings: string[] = []
  if (!isLoopback(config.host) && config.behind_tls !== 'true') {
    warnings.push(
      `HOST ${config.host} can be reached from other machines, and API keys would cross the network unencrypted. Put a proxy that terminates TLS in front and set ANNALS_BEHIND_TLS=true, or set HOST=127.0.0.1.`,
    )
  }
  for (const [variable, token] of [
    ['ANNALS_ADMIN_TOKEN', config.admin_token],
    ['ANNALS_API_KEY', config.api_key],
  ] as const) {
    if (token !== undefined && deflateRawSync(token).length < TOKEN_BYTES_MIN)
      warnings.push(
        `${variable} repeats itself and can be guessed. Create a random one: openssl rand -hex 32.`,
      )
  }
  if (config.cors_origins === '*')
    warnings.push('ANNALS_CORS_ORIGINS=* lets every web page call the API. Name the origins that need it.')
  return warnings
}

/**
 * Whether a link may open the console: only with the embedded database, on an address that only this machine can
 * reach.
 */
export function signsInByCode(config: Pick<Config, 'host' | 'database_url'>): boolean {
  return config.database_url === undefined && isLoopback(config.host)
}

/** Whether a name or an address, without brackets, always means this machine. */
export function isLoopback(host: string): boolean {
  return /^localhost$/i.test(host) || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}
