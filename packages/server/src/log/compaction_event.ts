import { COMPACTION_TYPE } from '@annals/messages/context'
import type { AppendedEntry } from './append/append_request.js'
import type { takeCompaction } from './append_bodies.js'
import type { CompactionPlan } from './read/plan_compaction.js'

type Summary = ReturnType<typeof takeCompaction>['summary']

/** The event of a compaction; without a plan, one that can only be compared with what is stored. */
export function compactionEvent(
  id: string,
  { members, expansion, references }: Summary,
  plan: CompactionPlan | undefined,
): AppendedEntry {
  const { seen_seq: _, ...covered } = plan ?? { seen_seq: 0 }
  const data = `{${members},${JSON.stringify(covered).slice(1)}`
  return {
    id,
    id_given: false,
    kind: 'event',
    type: COMPACTION_TYPE,
    format: null,
    role: null,
    key: null,
    bytes: Buffer.byteLength(data) + expansion,
    tokens: 0,
    occurred_at: null,
    data: plan ? data : `{${members}}`,
    meta: null,
    references,
  }
}
