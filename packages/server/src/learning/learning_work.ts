import type { Row } from '@annals/kits/postgres/database.js'
import { type WorkThread, workAtOnce } from '@annals/kits/threads/work_thread.js'
import {
  findErrors,
  nearestStatements,
  type RuleFindings,
  readSkillHead,
  type ShownStretch,
  showStretch,
  spaceContext,
} from '@annals/learning'
import type { Compaction } from '@annals/messages/context'
import { takeCompaction } from '../log/append_bodies.js'
import type { CompactSessionBody } from '../log/compaction_schema.js'
import { logEntries, unreadSeqs } from '../log/log_entries.js'

export const LEARNING_WORK = {
  nearestStatements,
  skillHead: readSkillHead,
  spaceContext,

  /** What a model is shown for a summary: of an earlier one and of the messages that it kept, the words; of what follows, as much as fits. */
  showStretch(
    summary: Compaction['summary'],
    exceptions: Row[],
    rows: Row[],
    must_fit: boolean,
  ): ShownStretch & { earlier: string[] } {
    const said = summary.map(({ format, blob }, index) => ({
      ...{ seq: String(index + 1), id: '', kind: 'message', type: null, role: 'user', format },
      ...{ created_at: '', data: blob },
    }))
    const words = [...said, ...exceptions].flatMap((row) => {
      const { entries } = showStretch(logEntries([row]), true)
      return [entries.map(({ text }) => text).join('\n')]
    })
    return { ...showStretch(logEntries(rows), must_fit, unreadSeqs(rows)), earlier: words }
  },

  /** The members of a compaction's event that its request says. */
  takeSummary(text: string): ReturnType<typeof takeCompaction>['summary'] {
    return takeCompaction(JSON.parse(text) as CompactSessionBody, text, Buffer.byteLength(text)).summary
  },

  findErrors(rows: Row[], known_seq: number): RuleFindings {
    return findErrors(logEntries(rows), known_seq)
  },
}

type LearningWork = typeof LEARNING_WORK

declare module '@annals/kits/threads/work_thread.js' {
  interface ThreadWork extends LearningWork {}
}

export function findErrorsOnThread(thread: WorkThread) {
  return (project_id: string, rows: Row[], known_seq: number) => {
    const length = rows.reduce((sum, { data }) => sum + (data?.length ?? 0), 0)
    return workAtOnce(thread, project_id, 'findErrors', length, rows, known_seq)
  }
}
