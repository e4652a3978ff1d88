import { stopUnused } from './embedded_postgres.js'

// Run by an Annals process that ends without having left its server.
await stopUnused(process.argv[2]!)
