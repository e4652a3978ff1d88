export { AnnalsSessionStore, type AnnalsSessionStoreOptions } from './annals_session_store.js'
