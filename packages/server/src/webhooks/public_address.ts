import { type LookupAddress, lookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'

/** The first bits of the IPv6 addresses that are routed: 2000::/3. */
const ROUTED = { mask: 0xe0, value: 0x20 }

/** A host without any address that deliveries may go to. */
export class PrivateAddress extends Error {
  override readonly name = 'PrivateAddress'
}

/**
 * Whether an address is one of the public internet: neither loopback, link-local, private, shared, multicast nor
 * reserved, and no IPv6 address that stands for an IPv4 address which is.
 */
export function isPublic(address: string): boolean {
  if (!ipaddr.isValid(address)) return false
  const parsed = ipaddr.process(address)
  if (parsed.range() !== 'unicast') return false
  return parsed.kind() === 'ipv4' || (parsed.toByteArray()[0]! & ROUTED.mask) === ROUTED.value
}

/** Whether a URL's host is an address, for which no name is looked up, and not a public one. */
export function namesPrivateAddress({ hostname }: URL): boolean {
  const host = hostname.replace(/^\[|\]$/g, '')
  return isIP(host) !== 0 && !isPublic(host)
}

/**
 * Looks a name up as a connection is made, and gives the connection only public addresses: what it connects to is what
 * was checked, whatever DNS answers next.
 */
export const lookUpPublic: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, found) => {
    if (error) return callback(error, [])
    const addresses: LookupAddress[] = found.filter(({ address }) => isPublic(address))
    const [first] = addresses
    if (!first) return callback(new PrivateAddress(), [])
    if (options.all) callback(null, addresses)
    else callback(null, first.address, first.family)
  })
}
