import { Command } from 'commander'
import { runLongWork, withDatabaseToRead } from './with_database.js'

/** annals anchor */
export function anchorCommand(): Command {
  return new Command('anchor')
    .description('Sign the heads of all chains, and append them to a file outside the database.')
    .argument('<file>', 'the anchors, a line each; it is made if it is not there')
    .requiredOption('--key <file>', 'the private key, Ed25519 in PEM; it is made if it is not there')
    .addHelpText(
      'after',
      `
Run it every minute, and keep both files where whoever administers the database cannot write. What was anchored
cannot be rewritten without being found: see docs/proof.md.

Examples:
  annals anchor /mnt/anchors/annals.ndjson --key /etc/annals/anchor.pem
  annals verify --proof --anchors /mnt/anchors/annals.ndjson`,
    )
    .action(async (file: string, { key }: { key: string }) => {
      await runLongWork(
        (signal) =>
          withDatabaseToRead(async (database) => {
            const { anchorHeads, readKey } = await import('@annals/archive')
            const made = await anchorHeads(database, file, await readKey(key))
            const leaves = made.reduce((sum, { size }) => sum + size, 0)
            process.stdout.write(
              made.length === 0
                ? 'Nothing has changed since the last anchor.\n'
                : `Anchored ${leaves} heads of ${made.length} projects, signed with ${made[0]!.public_key}.\n`,
            )
          }, signal),
        { interrupted: 'Nothing was anchored.', unfinished: 'Nothing was anchored; run the command again.' },
      )
    })
}
