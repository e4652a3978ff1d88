import { useEffect, useRef, useState } from 'react'
import type { Pdf } from './pdf_reading.ts'

/** Pages that are drawn at first, with each further step, and at most. */
const PAGES = { first: 2, step: 5, max: 50 }

/** The first pages of a PDF, as pictures. */
export function PdfPages({ bytes, name }: { bytes: Uint8Array; name: string }) {
  const [pdf, setPdf] = useState<Pdf>()
  const [fault, setFault] = useState<Error>()
  const [wanted, setWanted] = useState(PAGES.first)
  useEffect(() => {
    let is_gone = false
    let opened: Pdf | undefined
    const open = async () => {
      const { openPdf } = await import('./pdf_reading.ts')
      if (is_gone) return
      opened = await openPdf(bytes)
      if (is_gone) opened.close()
      else setPdf(opened)
    }
    open().catch((error: Error) => setFault(error))
    return () => {
      is_gone = true
      opened?.close()
    }
  }, [bytes])
  if (fault) return <p className="failure-line">{`${name} cannot be shown: ${reasonOf(fault)}.`}</p>
  if (!pdf) return <p className="faint">Opening {name}…</p>
  const most = Math.min(pdf.pages, PAGES.max)
  const count = Math.min(wanted, most)
  return (
    <>
      {Array.from({ length: count }, (_, index) => (
        <PdfPage key={index + 1} number={index + 1} {...{ pdf, name }} />
      ))}
      <p className="faint">
        {count === 1 ? 'Page 1' : `Pages 1 to ${count}`} of {pdf.pages}
        {count === PAGES.max && count < pdf.pages && '; download it to read on'}{' '}
        {count < most && (
          <button type="button" className="button is-small" onClick={() => setWanted(wanted + PAGES.step)}>
            Show more
          </button>
        )}
      </p>
    </>
  )
}

function PdfPage({ pdf, number, name }: { pdf: Pdf; number: number; name: string }) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const [fault, setFault] = useState<Error>()
  useEffect(() => {
    let is_gone = false
    const element = canvas.current!
    pdf.draw(number, element, element.clientWidth).catch((error: Error) => is_gone || setFault(error))
    return () => {
      is_gone = true
    }
  }, [pdf, number])
  if (fault) return <p className="failure-line">{`Page ${number} cannot be shown: ${reasonOf(fault)}.`}</p>
  return <canvas className="pdf-page" ref={canvas} role="img" aria-label={`${name}, page ${number}`} />
}

function reasonOf({ message }: Error): string {
  return message.replace(/\.$/, '')
}
