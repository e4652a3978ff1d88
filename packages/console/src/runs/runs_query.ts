import type { NewInput, Page, Resolution, RunItem, RunnerRequest } from '@annals/client'
import {
  type InfiniteData,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from '@tanstack/react-query'
import { useProject } from '../access/project_context.tsx'
import { say } from '../parts/notice.tsx'

export const RUN_STATES = {
  running: 'A runner holds the lease.',
  waiting: 'A request waits for an answer, and nobody holds the lease.',
  queued: 'Input is due, and nobody works on it.',
} as const
export type RunState = keyof typeof RUN_STATES

const PAGE = 50
const EVERY_MS = 4_000

/** The sessions in a state of their run, the latest first. */
export function useRunsIn(state: RunState) {
  const { annals, project_id } = useProject()
  return useInfiniteQuery({
    queryKey: [project_id, 'runs in', state],
    queryFn: ({ pageParam, signal }) =>
      annals.runs.list({ state, limit: PAGE }, { signal }).page(pageParam) as Promise<Page<RunItem>>,
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => (page.has_more ? page.next_cursor : undefined),
    refetchInterval: ({ state: { data } }) => ((data?.pages.length ?? 1) > 1 ? false : EVERY_MS),
  })
}

const STATES_MAX = 200
const STATES_EVERY_MS = 10_000

/** What becomes of the newest runs: their states by session, for a list of sessions. */
export function useRunStates(): ReadonlyMap<string, RunState> {
  const { annals, project_id } = useProject()
  const { data } = useQuery({
    queryKey: [project_id, 'run states'],
    queryFn: async ({ signal }) => {
      const states = new Map<string, RunState>()
      for (const state of ['queued', 'waiting', 'running'] as const)
        for (const { session_id } of (await annals.runs.list({ state, limit: STATES_MAX }, { signal }).page())
          .items)
          states.set(session_id, state)
      return states
    },
    refetchInterval: STATES_EVERY_MS,
    structuralSharing: false,
  })
  return data ?? NO_STATES
}

const NO_STATES: ReadonlyMap<string, RunState> = new Map()

/** So many that a busy queue is counted, and can be narrowed to one tool, without more pages. */
const REQUESTS_PAGE = 200

/** Open requests, the oldest first: of the project, or of one session. */
export function useOpenRequests(session_id?: string) {
  const { annals, project_id } = useProject()
  const query = useInfiniteQuery({
    queryKey: [project_id, 'requests', session_id ?? null],
    queryFn: ({ pageParam, signal }) =>
      annals.runs
        .requests({ state: 'open', session_id, limit: REQUESTS_PAGE, time_desc: false }, { signal })
        .page(pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => (page.has_more ? page.next_cursor : undefined),
    refetchInterval: EVERY_MS,
  })
  return { ...query, items: query.data?.pages.flatMap(({ items }) => items) ?? [] }
}

const SAID: Record<Resolution['decision'], string> = {
  approve: 'Approved.',
  deny: 'Denied.',
  answer: 'Answered.',
}

/** Answers a request. The first answer counts, so that of another is told as an error. */
export function useResolve() {
  const { annals, project_id } = useProject()
  const queries = useQueryClient()
  return useMutation({
    mutationFn: ({ request, ...answer }: { request: RunnerRequest } & Resolution) =>
      annals.runs.resolve(request.id, {
        by: 'console',
        ...answer,
        // Of this very request: what was read is what is approved.
        ...(answer.decision === 'approve' && request.call_sha256 && { call_sha256: request.call_sha256 }),
      }),
    onSuccess: ({ id }, { decision }) => {
      queries.setQueriesData<InfiniteData<Page<RunnerRequest>>>(
        { queryKey: [project_id, 'requests'] },
        (data) =>
          data && {
            ...data,
            pages: data.pages.map((page) => ({ ...page, items: page.items.filter((one) => one.id !== id) })),
          },
      )
      say(SAID[decision])
    },
    onSettled: () => {
      void queries.invalidateQueries({ queryKey: [project_id, 'requests'] })
      void queries.invalidateQueries({ queryKey: [project_id, 'run'] })
    },
  })
}

/** A session's run as it is now, and its pending input; undefined as long as it never had any. */
export function useRun(session_id: string, has_run: boolean) {
  const { annals, project_id } = useProject()
  return useQuery({
    queryKey: [project_id, 'run', session_id],
    enabled: has_run,
    queryFn: async ({ signal }) => {
      const [{ run }, inbox] = await Promise.all([
        annals.sessions.get(session_id, { signal }),
        annals.runs.inbox(session_id, { limit: PAGE }, { signal }).page(),
      ])
      return { run, inputs: inbox.items, has_more: inbox.has_more }
    },
    refetchInterval: EVERY_MS,
  })
}

/** Sends input to a session, or withdraws what is pending. */
export function useInbox(session_id: string) {
  const { annals, project_id } = useProject()
  const queries = useQueryClient()
  const onSettled = () => void queries.invalidateQueries({ queryKey: [project_id, 'run', session_id] })
  const send = useMutation({
    mutationFn: (input: NewInput) => annals.runs.send(session_id, input),
    onSuccess: () => say('Sent.'),
    onSettled,
  })
  const withdraw = useMutation({
    mutationFn: (input_id: string) => annals.runs.withdraw(session_id, input_id, 'withdrawn in the console'),
    onSuccess: () => say('Withdrawn.'),
    onSettled,
  })
  return { send, withdraw }
}
