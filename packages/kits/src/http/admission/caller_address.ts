import type { IncomingMessage } from 'node:http'
import proxyAddr from '@fastify/proxy-addr'
import ipaddr from 'ipaddr.js'
import { StartError } from '../../errors.js'
import type { AppServer } from '../app_server.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The request's address, as limits count it: an IPv4 address, or the /64 network of an IPv6 address. */
    readonly address: string
  }
}

/** Bytes of an IPv6 address that name a network; its owner has all addresses in it. */
const NETWORK_BYTES = 8

export type AddressOf = (request: IncomingMessage) => string

/**
 * Determines where requests come from. X-Forwarded-For is believed as far as trusted proxies wrote it, and ignored
 * without one, because any caller can send it. @throws StartError
 */
export function addressReader(trusted_proxies: string | undefined): AddressOf {
  const trust = compileTrust(trusted_proxies)
  return (request) =>
    networkOf(trust ? proxyAddr(request, trust) : (request.socket.remoteAddress ?? 'unknown'))
}

/** Sets `address` on each request. */
export function noteAddresses(app: AppServer, addressOf: AddressOf): void {
  app.decorateRequest('address', {
    getter() {
      return addressOf(this.raw)
    },
  })
}

function compileTrust(trusted_proxies: string | undefined) {
  if (trusted_proxies === undefined) return undefined
  try {
    return proxyAddr.compile(trusted_proxies.split(','))
  } catch (error) {
    throw new StartError(
      `ANNALS_TRUSTED_PROXIES has an ${(error as Error).message}. Correct it and start again.`,
    )
  }
}

function networkOf(address: string): string {
  if (!address.includes(':') || !ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  if (parsed.kind() === 'ipv4') return parsed.toString()
  return ipaddr
    .fromByteArray([...parsed.toByteArray().slice(0, NETWORK_BYTES), ...Array(NETWORK_BYTES).fill(0)])
    .toString()
}
