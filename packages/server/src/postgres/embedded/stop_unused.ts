import { stopUnused } from './embedded_postgres.js'

// Run by a process of Annals that ends without having left its server.
await stopUnused(process.argv[2]!)
