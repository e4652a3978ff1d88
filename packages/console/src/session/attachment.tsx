import type { Medium } from '@annals/messages/session'
import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { useProject } from '../access/project_context.tsx'
import type { Json } from '../json/exact_json.ts'
import { JsonTree } from '../json/json_tree.tsx'
import { download } from '../parts/clipboard.ts'
import { LongText } from '../parts/long_text.tsx'
import { OutsideLink } from '../parts/markdown.tsx'
import { say } from '../parts/notice.tsx'
import { PdfPages } from './pdf_pages.tsx'

const TEXT_MAX = 2_400
/** Types that a browser draws or plays without running code in them; SVG is not one. */
const SHOWN = {
  image: /^image\/(?:png|jpeg|gif|webp|avif)$/,
  audio: /^audio\/(?:mpeg|mp3|wav|x-wav|wave|ogg|mp4|aac|flac|webm)$/,
  video: /^video\/(?:mp4|webm|ogg)$/,
} as const
/** Drawn on request. */
const PDF = 'application/pdf'
const NAMES: Record<Medium['type'], string> = { image: 'Image', audio: 'Audio', video: 'Video', file: 'File' }
/** What follows the NUL that stands for a blob's bytes in what is read: the blob's hash. */
const MARKED = /^t?([0-9a-f]{64})$/
const DATA_URL = /^data:([\w.+-]+\/[\w.+-]+);base64,/

/** An image, a recording or a file of a message: shown if nothing in it can run, else to be saved. */
export function Attachment({ part }: { part: Medium }) {
  const { type, text, meta } = part
  const bytes = [meta.data, meta.url, 'file_data' in meta ? meta.file_data : undefined]
  const own = bytes.find((value) => value?.startsWith('data:')) ?? meta.data
  const media_type = meta.media_type ?? DATA_URL.exec(own ?? '')?.[1] ?? typeOf(part)
  const filename = part.filename ?? ('filename' in meta ? meta.filename : undefined)
  const sha256 = [...bytes, text]
    .map((value) => value?.includes('\0') && MARKED.exec(value.slice(value.lastIndexOf('\0') + 1))?.[1])
    .find(Boolean)
  if (sha256) return <StoredBlob {...{ sha256, media_type, filename }} />
  if (own !== undefined) {
    const source = own.startsWith('data:') ? own : `data:${media_type};base64,${own}`
    // What stands after the type in a data: URL could be another one.
    if (DATA_URL.exec(source)?.[1] === media_type) {
      if (media_type === PDF) return <InlinePdf {...{ source, filename }} />
      if (isShown(media_type)) return <Shown {...{ source, media_type, filename }} />
    }
  }
  if (type === 'image' && meta.url !== undefined && own === meta.data)
    return <OutsideImage source={meta.url} />
  return (
    <>
      {/* What was spoken. */}
      {text && <LongText text={text} max={TEXT_MAX} />}
      <details className="thinking">
        <summary>
          {NAMES[type]} · {filename ?? meta.media_type ?? 'without a name'}
        </summary>
        <JsonTree value={{ ...meta } as Json} />
      </details>
    </>
  )
}

/** A blob of the project, read when its entry is on the screen. */
export function StoredBlob(props: { sha256: string; media_type: string; filename: string | undefined }) {
  const { sha256, media_type, filename } = props
  const { annals, project_id } = useProject()
  const is_pdf = media_type === PDF
  const [is_open, setOpen] = useState(isShown(media_type))
  const { data, isError, error } = useQuery({
    queryKey: [project_id, 'blob', sha256],
    enabled: is_open,
    queryFn: ({ signal }) => annals.blobs.get(sha256, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 30_000,
    structuralSharing: false,
  })
  const source = useObjectUrl(is_pdf ? undefined : data, media_type)
  const name = filename ?? sha256.slice(0, 12)
  const save = async () => {
    try {
      download(name, [data ?? (await annals.blobs.get(sha256))], media_type)
    } catch (failure) {
      say(`Not downloaded: ${(failure as Error).message}`)
    }
  }
  return (
    <figure className="attachment">
      {source && <Shown {...{ source, media_type, filename }} />}
      {is_pdf && is_open && data && <PdfPages bytes={data} name={name} />}
      {is_open && !data && !isError && <p className="faint">Loading {name}…</p>}
      {isError && <p className="failure-line">{error.message}</p>}
      <figcaption>
        {filename ?? 'Attachment'} <span className="faint">{media_type}</span>{' '}
        {is_pdf && !is_open && <ShowButton onShow={() => setOpen(true)} />}{' '}
        <button type="button" className="button is-small" onClick={() => void save()}>
          Download
        </button>
      </figcaption>
    </figure>
  )
}

/** A PDF that stands in its message, as a data: URL. */
function InlinePdf({ source, filename }: { source: string; filename: string | undefined }) {
  const [bytes, setBytes] = useState<Uint8Array<ArrayBuffer>>()
  const name = filename ?? 'The PDF'
  const read = (): Uint8Array<ArrayBuffer> => {
    try {
      return Uint8Array.from(atob(source.slice(source.indexOf(',') + 1)), (char) => char.charCodeAt(0))
    } catch {
      // What is no base64 is no PDF either, which is said of it where it is opened.
      return new Uint8Array()
    }
  }
  return (
    <figure className="attachment">
      {bytes && <PdfPages bytes={bytes} name={name} />}
      <figcaption>
        {filename ?? 'Attachment'} <span className="faint">{PDF}</span>{' '}
        {!bytes && <ShowButton onShow={() => setBytes(read())} />}{' '}
        <button
          type="button"
          className="button is-small"
          onClick={() => download(filename ?? 'attachment.pdf', [read()], PDF)}
        >
          Download
        </button>
      </figcaption>
    </figure>
  )
}

function ShowButton({ onShow }: { onShow: () => void }) {
  return (
    <button type="button" className="button is-small" onClick={onShow}>
      Show
    </button>
  )
}

function Shown(props: { source: string; media_type: string; filename: string | undefined }) {
  const { source, media_type, filename } = props
  const [is_broken, setBroken] = useState(false)
  const name = filename ?? 'From the message'
  const onError = () => setBroken(true)
  if (is_broken) return <p className="faint">Not shown: your browser cannot read it as {media_type}.</p>
  if (SHOWN.image.test(media_type))
    return <img className="picture" src={source} alt={name} onError={onError} />
  const Player = SHOWN.audio.test(media_type) ? 'audio' : 'video'
  return <Player className="recording" controls src={source} aria-label={name} onError={onError} />
}

/** External images are not fetched: that would reveal who reads. */
function OutsideImage({ source }: { source: string }) {
  return (
    <p className="picture-link">
      External image, not loaded:
      <OutsideLink href={source} text={source.slice(0, 120)}>
        {source.slice(0, 120)}
      </OutsideLink>
    </p>
  )
}

function isShown(media_type: string): boolean {
  return Object.values(SHOWN).some((types) => types.test(media_type))
}

/** What OpenAI calls a recording's type, or what an image is if nobody says. */
function typeOf({ type, meta }: Medium): string {
  if (type === 'image') return 'image/png'
  if (type === 'audio') return 'format' in meta && meta.format ? `audio/${meta.format}` : 'audio/wav'
  return 'application/octet-stream'
}

/** A URL of bytes, with the type that was checked, while the component is there. */
function useObjectUrl(bytes: Uint8Array<ArrayBuffer> | undefined, type: string): string | undefined {
  const [url, setUrl] = useState<string>()
  useEffect(() => {
    if (!bytes) return
    const made = URL.createObjectURL(new Blob([bytes], { type }))
    setUrl(made)
    return () => URL.revokeObjectURL(made)
  }, [bytes, type])
  return url
}
