/**
 * How long a node that was killed keeps what it had taken up, until another looks for it. Files share a database, or a
 * service, and any file's node may have it.
 */
export const LEASE_MS = 75_000
