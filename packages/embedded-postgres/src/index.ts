export {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  type ServerConnection,
  startEmbeddedPostgres,
} from './embedded_postgres.js'
export { asPlainError, EmbeddedPostgresError } from './failures.js'
export { describeRemains } from './remains.js'
export { EMBEDDED_CONNECTIONS_MAX } from './settings.js'
