import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useProject } from '../access/project_context.tsx'
import { ask } from '../access/service.ts'
import { Empty } from '../parts/states.tsx'
import { countText } from '../parts/timestamp.tsx'

/** Says that search is off, what it costs, and offers to switch it on. */
export function SearchOff({ onSwitched }: { onSwitched: () => void }) {
  const { annals, project_id, may_write } = useProject()
  const queries = useQueryClient()
  const [failure, setFailure] = useState<string>()
  const usage = useQuery({
    queryKey: [project_id, 'usage'],
    queryFn: ({ signal }) => annals.usage({ signal }),
  })
  const switchOn = async () => {
    try {
      await ask('/console/data/search', { method: 'POST', opens: project_id })
      await queries.invalidateQueries({ queryKey: [project_id, 'search'] })
      onSwitched()
    } catch (error) {
      setFailure((error as Error).message)
    }
  }
  const { entries, bytes } = usage.data ?? {}
  return (
    <Empty title="Search is off for this project" is_page>
      <p>
        Search finds entries of all sessions by their words. It needs an index, which takes up to as much disk
        space as the text of the entries, and processor time in the background for each entry that is stored.
        Appends do not wait for it.
      </p>
      {entries && bytes && (
        <p>
          This project has {countText(entries.used)} entries with {sizeText(bytes.used)}, which would be
          indexed now. To remove the index, run <code>annals project set … --search off</code>.
        </p>
      )}
      {may_write ? (
        <button type="button" className="button is-primary" onClick={() => void switchOn()}>
          Switch search on
        </button>
      ) : (
        <p>Your key is read-only. Somebody whose key may write can switch search on here.</p>
      )}
      <p className="failure-line" role="alert">
        {failure}
      </p>
    </Empty>
  )
}

function sizeText(bytes: number): string {
  return bytes < 1_000_000
    ? `${countText(Math.ceil(bytes / 1_000))} kB`
    : `${(bytes / 1_000_000).toFixed(1)} MB`
}
