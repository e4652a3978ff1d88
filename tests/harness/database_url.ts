const SHAPE = /^(postgres(?:ql)?:\/\/[^/]*\/)([^?]*)(.*)$/

/**
 * The same server, another database. Done on the text, because a URL that names a Unix socket
 * (`postgresql://user@/name?host=/dir`) has an empty host and is none that `new URL` takes.
 */
export function withDatabaseName(databaseUrl: string, name: string): string {
  const match = SHAPE.exec(databaseUrl)
  if (!match) throw new Error('The database URL must look like postgresql://user@host:port/name')
  return `${match[1]}${name}${match[3]}`
}

/** The same URL with a password. A server that trusts its callers takes any. */
export function withDatabasePassword(databaseUrl: string, password: string): string {
  return databaseUrl.replace(/^(postgres(?:ql)?:\/\/[^/@:]*)(?::[^/@]*)?@/, `$1:${password}@`)
}

/** The URL of a database that is reached through a Unix socket's directory. */
export function socketUrl(socket: { host: string; port: number; user: string; database: string }): string {
  return `postgresql://${socket.user}@/${socket.database}?host=${socket.host}&port=${socket.port}`
}

/** The same database and user, reached at another TCP address. */
export function withDatabaseHost(databaseUrl: string, host: string, port: number): string {
  const [, server = ''] = SHAPE.exec(databaseUrl) ?? []
  const credentials = server.slice(server.indexOf('//') + 2, server.lastIndexOf('@') + 1)
  return `postgresql://${credentials}${host}:${port}/${databaseNameOf(databaseUrl)}`
}

export function databaseNameOf(databaseUrl: string): string {
  return SHAPE.exec(databaseUrl)?.[2] ?? ''
}
