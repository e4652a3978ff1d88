export * from './annals_chats.js'
export * from './annals_streams.js'
