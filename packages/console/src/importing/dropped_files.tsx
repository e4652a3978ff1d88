import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import type { Project } from '../access/project_context.tsx'
import { navigate } from '../address/address.ts'
import { Dialog } from '../parts/dialog.tsx'
import type { ImportReport } from './import_files.ts'

const CHOSEN = 'annals:files'

/** Imports dropped or chosen files. */
export function importChosen(files: FileList | null): void {
  if (files && files.length > 0) dispatchEvent(new CustomEvent(CHOSEN, { detail: [...files] }))
}

/** Imports files of other tools that are dropped anywhere on the page, and tells what became of them. Once on the page. */
export function DroppedFiles({ project }: { project: Project }) {
  const queries = useQueryClient()
  const [is_open, setOpen] = useState(false)
  const [progress, setProgress] = useState<string>()
  const [report, setReport] = useState<ImportReport>()
  const [failure, setFailure] = useState<string>()
  const { annals, project_id, may_write } = project
  useEffect(() => {
    const take = async (files: File[]) => {
      setOpen(true)
      setReport(undefined)
      setFailure(may_write ? undefined : 'This key may not write, so nothing can be imported with it.')
      if (!may_write) return
      setProgress('Reading…')
      try {
        // The parsers are loaded when they are needed.
        const { importFiles } = await import('./import_files.ts')
        setReport(await importFiles(annals, files, setProgress))
        void queries.invalidateQueries({ queryKey: [project_id] })
      } catch (error) {
        setFailure((error as Error).message)
      } finally {
        setProgress(undefined)
      }
    }
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes('Files') === true
    const over = (event: DragEvent) => {
      if (hasFiles(event)) event.preventDefault()
    }
    const drop = (event: DragEvent) => {
      if (!hasFiles(event)) return
      event.preventDefault()
      void take([...(event.dataTransfer?.files ?? [])])
    }
    const chosen = (event: Event) => void take((event as CustomEvent<File[]>).detail)
    addEventListener('dragover', over)
    addEventListener('drop', drop)
    addEventListener(CHOSEN, chosen)
    return () => {
      removeEventListener('dragover', over)
      removeEventListener('drop', drop)
      removeEventListener(CHOSEN, chosen)
    }
  }, [annals, project_id, may_write, queries])
  const show = () => {
    setOpen(false)
    navigate('/sessions')
  }
  return (
    <Dialog title="Import" is_open={is_open} onClose={() => setOpen(false)}>
      <div className="confirm">
        <p role="status">{progress}</p>
        <p className="failure-line" role="alert">
          {failure}
        </p>
        {report && <Report report={report} />}
        {report && (
          <div className="dialog-actions">
            <button type="button" className="button is-primary" onClick={show}>
              Show the sessions
            </button>
          </div>
        )}
      </div>
    </Dialog>
  )
}

function Report({ report }: { report: ImportReport }) {
  const { formats, sessions, entries, notes, notes_count } = report
  return (
    <>
      {formats.map((sentence) => (
        <p key={sentence}>{sentence}</p>
      ))}
      <p>
        Imported {sessions.stored} sessions, {entries.stored} entries. Already there: {sessions.known}{' '}
        sessions, {entries.known} entries.
      </p>
      {notes.length > 0 && (
        <ul>
          {notes.map((text) => (
            <li key={text}>{text}</li>
          ))}
        </ul>
      )}
      {notes_count > notes.length && <p>There are {notes_count - notes.length} more.</p>}
    </>
  )
}
