export { AnnalsSession, type AnnalsSessionOptions } from './annals_session.js'
export { itemOf, responsesItemOf } from './responses_items.js'
