import { stopUnused } from './embedded_postgres.js'

// Run by a process that ends without having left its server.
await stopUnused(process.argv[2]!, process.argv[3]!)
