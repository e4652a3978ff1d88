export { AnnalsSessionService, type AnnalsSessionServiceOptions } from './annals_session_service.js'
