import { getDocument, PDFWorker } from 'pdfjs-dist'
import worker_path from './pdf_worker.ts?worker&url'

/*
 * The library that reads PDFs, which is large: it is loaded when somebody asks for a PDF's pages. It reads in a worker,
 * one for each PDF, which can load nothing and send nothing anywhere; what a PDF wants to run is never run.
 */

const BYTES_MAX = 16 * 1024 * 1024
/** Of the images in it, of a page as it is drawn, and of a page's longer side. */
const PIXELS_MAX = { image: 20_000_000, page: 4_000_000, side: 8_000 }
/** How long opening it, or drawing a page, may take. */
const SECONDS_MAX = 20

/** A PDF that is open. */
export interface Pdf {
  pages: number
  /** Draws a page, the first is 1, for a width in pixels of the page's style. */
  draw(page: number, canvas: HTMLCanvasElement, width: number): Promise<void>
  close(): void
}

/** What there is of Trusted Types here, in browsers that have them. */
interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL(): string }): { createScriptURL(url: string): string }
}

// The page's policy lets nothing else make an address from which a script is loaded, and this makes only one.
const worker_url = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes
  ?.createPolicy('pdf-worker', { createScriptURL: () => worker_path })
  .createScriptURL('')

/** Opens a PDF. @throws Error whose message says to people why it cannot be read */
export async function openPdf(bytes: Uint8Array): Promise<Pdf> {
  if (bytes.length > BYTES_MAX) throw new Error(`it has more than ${BYTES_MAX / 1024 / 1024} MB`)
  const port = new Worker(worker_url ?? worker_path, { type: 'module' })
  const worker = PDFWorker.create({ port })
  const task = getDocument({
    // A copy, as it becomes the worker's.
    data: bytes.slice(),
    worker,
    isEvalSupported: false,
    enableXfa: false,
    useWorkerFetch: false,
    useWasm: false,
    maxImageSize: PIXELS_MAX.image,
    verbosity: 0,
  })
  const close = () => {
    const terminate = () => port.terminate()
    // It gives back what the page has of its fonts; a worker that hangs does not answer.
    void Promise.race([task.destroy(), new Promise((resolve) => setTimeout(resolve, 1_000))]).then(
      terminate,
      terminate,
    )
  }
  const tooMuch = new Promise<never>((_resolve, reject) =>
    port.addEventListener('message', ({ data }) => {
      if (!data.unpacks_to_more_than) return
      close()
      reject(new Error(`it unpacks to more than ${data.unpacks_to_more_than / 1024 / 1024} MB`))
    }),
  )
  const within = <T>(work: Promise<T>) => inTime(Promise.race([work, tooMuch]), close)
  try {
    const pdf = await within(task.promise)
    const draw = async (number: number, canvas: HTMLCanvasElement, width: number) => {
      const page = await pdf.getPage(number)
      const whole = page.getViewport({ scale: 1 })
      const scale = Math.min(
        (width * devicePixelRatio) / whole.width,
        Math.sqrt(PIXELS_MAX.page / (whole.width * whole.height)),
        PIXELS_MAX.side / Math.max(whole.width, whole.height),
      )
      const viewport = page.getViewport({ scale })
      canvas.width = Math.max(1, Math.floor(viewport.width))
      canvas.height = Math.max(1, Math.floor(viewport.height))
      await page.render({ canvas, viewport }).promise
    }
    return {
      pages: pdf.numPages,
      draw: (...page) => within(draw(...page)),
      close,
    }
  } catch (error) {
    close()
    const { name } = error as Error
    throw name === 'PasswordException' ? new Error('it is protected by a password') : error
  }
}

/** Ends work that takes too long. Only while the page is on the screen: a hidden one draws nothing. */
function inTime<T>(work: Promise<T>, end: () => void): Promise<T> {
  return new Promise((resolve, reject) => {
    let seconds = 0
    const timer = setInterval(() => {
      if (document.hidden || ++seconds < SECONDS_MAX) return
      end()
      reject(new Error(`it takes more than ${SECONDS_MAX} seconds`))
    }, 1_000)
    const done = () => clearInterval(timer)
    work.then(resolve, reject).finally(done)
  })
}
