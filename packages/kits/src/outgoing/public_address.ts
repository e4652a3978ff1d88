import { Resolver } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'

/** The first bits of the IPv6 addresses that are routed: 2000::/3. */
const ROUTED = { mask: 0xe0, value: 0x20 }

/** The names that stand for loopback addresses, whatever a name server says (RFC 6761). */
const LOCALHOST = /(?:^|\.)localhost\.?$/

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

/** Whether a URL's host is localhost, or an address that is not public: no name is looked up for either. */
export function namesPrivateAddress({ hostname }: URL): boolean {
  if (LOCALHOST.test(hostname)) return true
  const host = hostname.replace(/^\[|\]$/g, '')
  return isIP(host) !== 0 && !isPublic(host)
}

/**
 * Asks the name servers. The platform's own look-up has two threads in a process, where a name whose servers never answer
 * would keep other projects' names waiting, and the database's.
 */
export const NAMES = new Resolver({ timeout: 2_000, tries: 2 })

/**
 * Looks a name up as a connection is made, and gives the connection only public addresses: what it connects to is what
 * was checked, whatever DNS answers next.
 */
export const lookUpPublic: LookupFunction = (hostname, { all }, callback) => {
  void Promise.allSettled([NAMES.resolve4(hostname), NAMES.resolve6(hostname)]).then((answers) => {
    const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
    const addresses = found.filter(isPublic).map((address) => ({ address, family: isIP(address) }))
    const failed = answers.find((answer) => answer.status === 'rejected')
    const [first] = addresses
    if (!first) callback(found.length === 0 && failed ? failed.reason : new PrivateAddress(), [])
    else if (all) callback(null, addresses)
    else callback(null, first.address, first.family)
  })
}
