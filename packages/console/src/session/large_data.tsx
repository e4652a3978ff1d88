import { parseJson } from '@annals/messages/json'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useProject } from '../access/project_context.tsx'
import type { Json } from '../json/exact_json.ts'
import { JsonTree } from '../json/json_tree.tsx'

/** Most ids of one request. */
const IDS_MAX = 200

/** Data of an event that an adapter stored in parts, put together when asked for. */
export function LargeData({ session_id, ids }: { session_id: string; ids: string[] }) {
  const { annals, project_id } = useProject()
  const [is_wanted, setWanted] = useState(false)
  const { data, error, isFetching } = useQuery({
    queryKey: [project_id, 'large_data', session_id, ids],
    enabled: is_wanted,
    queryFn: async ({ signal }) => {
      const read = async (from: number) =>
        (
          await annals.sessions
            .timeline(session_id, { ids: ids.slice(from, from + IDS_MAX).join() }, { signal })
            .page()
        ).items
      const pages = await Promise.all(ids.flatMap((_, at) => (at % IDS_MAX === 0 ? [read(at)] : [])))
      const texts = pages.flat().map((item) => (item.kind === 'event' ? String(item.data.text) : ''))
      return parseJson(texts.join('')) as Json
    },
    staleTime: Number.POSITIVE_INFINITY,
  })
  if (data !== undefined) return <JsonTree value={data} />
  return (
    <>
      <button type="button" className="button is-small" disabled={isFetching} onClick={() => setWanted(true)}>
        {isFetching ? 'Reading…' : 'Put together'}
      </button>
      {error && <p className="failure-line">{error.message}</p>}
    </>
  )
}
