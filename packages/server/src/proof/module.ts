import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '@annals/kits/configuration/config.js'
import { type Background, Loop, pausesForRequests } from '@annals/kits/lifecycle/background.js'
import type { Module } from '@annals/kits/module.js'
import { functionsIn } from '@annals/kits/postgres/stored_function.js'
import { Counter, Gauge, type Registry } from 'prom-client'
import * as anchors from './anchor_queries.js'
import * as chains from './chain_queries.js'

const kept = {
  erased_with: 'project',
  counted: false,
  exported: false,
  is_derived: true,
  checks: {},
} as const

/** Logs that prove themselves: entries are chained, and the heads of chains anchored outside. See docs/proof.md. */
export const PROOF_MODULE: Module = {
  name: 'proof',
  functions: functionsIn(anchors, chains),
  open: ({ config, background, metrics }) => ({
    routes: async () => {
      const [{ proofRoutes }, { destinationOf }] = await Promise.all([
        import('./proof_routes.js'),
        import('./destinations.js'),
      ])
      const { proof_anchor } = config
      return proofRoutes(proof_anchor === undefined ? null : destinationOf(proof_anchor, config).name)
    },
    ...(config.proof_anchor !== undefined && {
      background: () => anchorsHeads(config, background, metrics.registry),
    }),
  }),
  tables: [
    {
      name: 'proof_destinations',
      is_reference: true,
      handled:
        'Belongs to the installation: what was sent to a destination is not what another database would send. On a cluster, only the coordinator has it.',
    },
    {
      ...kept,
      name: 'proof_heads',
      kind: 'proof_head',
      key: ['chain', 'session_id'],
      columns: { chain: 'uuid', session_id: 'uuid', seq: 'bigint' },
    },
    {
      ...kept,
      name: 'proof_anchors',
      kind: 'proof_anchor',
      key: ['chain', 'nth'],
      columns: { chain: 'uuid', nth: 'ordinal', statement: 'text' },
    },
    {
      ...kept,
      name: 'proof_leaves',
      kind: 'proof_leaf',
      key: ['session_id', 'seq', 'chain'],
      columns: { session_id: 'uuid', seq: 'bigint', chain: 'uuid', nth: 'ordinal', place: 'integer' },
    },
  ],
}

/** Anchors the heads of chains every minute, at one node at a time. */
function anchorsHeads(config: Config, { database, signal, logger }: Background, registry: Registry): Loop {
  const { proof_anchor_ms: poll_ms } = config
  const anchored = new Counter({
    name: 'annals_proof_anchors_total',
    help: 'Anchors that this process has sent.',
    registers: [registry],
  })
  const failures = new Counter({
    name: 'annals_proof_anchor_failures_total',
    help: 'Times that heads could not be anchored.',
    registers: [registry],
  })
  const passed = new Gauge({
    name: 'annals_proof_passed_timestamp_seconds',
    help: 'When this process last found that all heads are anchored.',
    registers: [registry],
    aggregator: 'max',
  })
  const pauseFor = pausesForRequests()
  const poll = async () => {
    const [{ anchorHeads }, { destinationOf }, { readKey }] = await Promise.all([
      import('./anchoring.js'),
      import('./destinations.js'),
      import('./anchor.js'),
    ])
    try {
      const done = await anchorHeads({
        ...{ database, signal, rest_s: poll_ms / 2_000 },
        destination: destinationOf(config.proof_anchor!, config),
        key: await readKey(config.proof_key!),
        pause: (worked_ms) => sleep(pauseFor(worked_ms), undefined, { signal, ref: false }),
      })
      anchored.inc(done?.anchors ?? 0)
      if (done?.left) throw done.left
      if (done) passed.setToCurrentTime()
    } catch (error) {
      failures.inc()
      throw error
    }
  }
  return new Loop({
    ...{ signal, logger, poll, poll_ms },
    failure: 'heads were not anchored; will try again',
  })
}
