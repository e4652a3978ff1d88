/** What large entries are made of, and escapes: without Node, so that a browser can use it. */
export * from './escape.js'
export * from './large_events.js'
export * from './large_messages.js'
