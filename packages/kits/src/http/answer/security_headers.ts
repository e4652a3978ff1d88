/** On every answer: browsers must not guess another content type. */
export const NO_SNIFFING = { 'x-content-type-options': 'nosniff' } as const

/** For every answer without its own: no cache stores it, because most answers are only for the holder of a key. */
export const SECURITY_HEADERS = { ...NO_SNIFFING, 'cache-control': 'no-store' } as const
