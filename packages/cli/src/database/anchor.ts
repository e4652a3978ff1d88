import { setTimeout as sleep } from 'node:timers/promises'
import { StartError } from '@annals/kits/errors.js'
import { Command } from 'commander'
import { runLongDatabaseWork } from './with_database.js'

/** How long another pass to the same place is waited for, and between two looks. */
const WAIT_MS_MAX = 120_000
const LOOK_MS = 200

/** annals anchor */
export function anchorCommand(): Command {
  return new Command('anchor')
    .description('Sign the heads of all chains, and send them to a place outside the database.')
    .argument(
      '<place>',
      'a file, which is made if it is not there; s3://bucket/prefix; or the URL of a webhook',
    )
    .requiredOption('--key <file>', 'the private key, Ed25519 in PEM; it is made if it is not there')
    .addHelpText(
      'after',
      `
A service does the same every minute with ANNALS_PROOF_ANCHOR. Keep the place and the key where the administrators of the
database cannot write. Changes of anchored entries are found: see docs/proof.md.

Examples:
  annals anchor /mnt/anchors/annals.ndjson --key /etc/annals/anchor.pem
  annals verify --proof --anchors /mnt/anchors/annals.ndjson`,
    )
    .action(async (place: string, { key }: { key: string }) => {
      await runLongDatabaseWork(
        async (database, signal) => {
          const { anchorHeads } = await import('annals/dist/proof/anchoring.js')
          const { destinationOf } = await import('annals/dist/proof/destinations.js')
          const { publicKeyOf, readKey } = await import('annals/dist/proof/anchor.js')
          const { readConfig } = await import('@annals/kits/configuration/config.js')
          const parts = {
            ...{ database, signal, key: await readKey(key) },
            destination: destinationOf(place, readConfig(process.env)),
          }
          let done = await anchorHeads(parts)
          for (const until = performance.now() + WAIT_MS_MAX; !done && performance.now() < until; ) {
            await sleep(LOOK_MS, undefined, { signal })
            done = await anchorHeads(parts)
          }
          if (!done)
            throw new StartError('Another process has been anchoring there for two minutes. Try again.')
          process.stdout.write(
            done.anchors === 0
              ? 'Nothing has changed since the last anchor.\n'
              : `Anchored ${done.heads} heads of ${done.projects} projects, signed with ${publicKeyOf(parts.key)}.\n`,
          )
          if (done.left)
            throw new StartError(
              `Heads of other projects remain, because a machine of the cluster does not answer (${done.left.message}). Run the command again.`,
            )
        },
        {
          interrupted: 'What was sent stays; the next run goes on.',
          unfinished: 'What was sent stays; run the command again.',
        },
      )
    })
}
