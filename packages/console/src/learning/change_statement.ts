import type { Page, Statement, StatementChange } from '@annals/client'
import { type InfiniteData, useMutation, useQueryClient } from '@tanstack/react-query'
import { useProject } from '../access/project_context.tsx'
import { say } from '../parts/notice.tsx'
import type { State } from './learning_query.ts'

/** What a person may do with a statement in each state: the state that follows, and the words for it. */
export const DECISIONS: Record<State, { approve?: string; retire?: string; edit?: string }> = {
  proposed: { approve: 'Approve', retire: 'Reject', edit: 'Edit' },
  active: { retire: 'Retire', edit: 'Edit' },
  conflict: { approve: 'Keep', retire: 'Retire', edit: 'Edit' },
  retired: { approve: 'Approve', edit: 'Edit' },
  revoked: {},
}

const SAID = {
  active: 'Approved: agents are given it.',
  retired: 'It is under Retired now, where it can be approved.',
  edited: 'Saved.',
}

/** Approves, rejects, retires or edits statements of a list that shows one state. */
export function useChangeStatement(space_id: string, shown: State) {
  const { annals, project_id } = useProject()
  const queries = useQueryClient()
  const learnt = [project_id, 'learnt', space_id]
  return useMutation({
    mutationFn: ({ id, change }: { id: string; change: StatementChange }) =>
      annals.learningSpaces.changeStatement(id, change),
    onSuccess: (changed, { change }) => {
      // At once, so that the next key never means a statement that was decided already.
      queries.setQueryData<InfiniteData<Page<Statement>>>(
        [...learnt, 'statements', shown],
        (data) => data && { ...data, pages: data.pages.map((page) => withChanged(page, changed, shown)) },
      )
      say(SAID[change.state ?? 'edited'])
    },
    // After a refusal as well: another person may have changed it, or it was revoked.
    onSettled: () => void queries.invalidateQueries({ queryKey: learnt }),
  })
}

/** Changes several statements of a list that shows one state, in order, up to the first that is refused. */
export function useChangeStatements(space_id: string, shown: State) {
  const { annals, project_id } = useProject()
  const queries = useQueryClient()
  const learnt = [project_id, 'learnt', space_id]
  return useMutation({
    mutationFn: async (changes: Array<{ id: string; change: StatementChange }>) => {
      for (const { id, change } of changes) {
        const changed = await annals.learningSpaces.changeStatement(id, change)
        queries.setQueryData<InfiniteData<Page<Statement>>>(
          [...learnt, 'statements', shown],
          (data) => data && { ...data, pages: data.pages.map((page) => withChanged(page, changed, shown)) },
        )
      }
      return changes.length
    },
    onSuccess: (count) => say(count === 1 ? 'One statement changed.' : `${count} statements changed.`),
    onSettled: () => void queries.invalidateQueries({ queryKey: learnt }),
  })
}

function withChanged(page: Page<Statement>, changed: Statement, shown: State): Page<Statement> {
  const items = page.items
    .map((one) => (one.id === changed.id ? changed : one))
    .filter(({ state }) => state === shown)
  return { ...page, items }
}
