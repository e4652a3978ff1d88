import type { Row } from '@annals/kits/postgres/database.js'
import { type WorkThread, workAtOnce } from '@annals/kits/threads/work_thread.js'
import {
  findErrors,
  nearestStatements,
  type RuleFindings,
  readSkillHead,
  spaceContext,
} from '@annals/learning'
import { logEntries } from '../log/log_entries.js'

export const LEARNING_WORK = {
  nearestStatements,
  skillHead: readSkillHead,
  spaceContext,

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
