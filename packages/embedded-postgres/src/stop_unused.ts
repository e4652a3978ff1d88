import type { Transport } from './data_directory.js'
import { stopUnused } from './embedded_postgres.js'

// Run by a process that ends without having left its server.
const [, , dataDir, name, transport] = process.argv
await stopUnused(dataDir!, name!, transport as Transport)
