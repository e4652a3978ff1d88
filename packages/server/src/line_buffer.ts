/** Characters that are written as soon as they are there, and ms after which fewer are. */
const WRITTEN_AT = 16_384
const WRITTEN_AFTER_MS = 50

/**
 * Gathers the lines of a log, to hand them on together. Each write is a call of the system; and the stream behind this
 * could gather as well, but measures all that it has gathered with every line that comes.
 */
export class LineBuffer {
  private text = ''
  private timer: NodeJS.Timeout | undefined

  constructor(private readonly destination: { write(text: string): unknown }) {}

  write(line: string): void {
    this.text += line
    if (this.text.length >= WRITTEN_AT) this.flush()
    else this.timer ??= setTimeout(() => this.flush(), WRITTEN_AFTER_MS).unref()
  }

  flush(): void {
    clearTimeout(this.timer)
    this.timer = undefined
    const { text } = this
    this.text = ''
    if (text !== '') this.destination.write(text)
  }
}
