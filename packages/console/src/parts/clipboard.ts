import { say } from './notice.tsx'

/**
 * Copies a text and says so. A text that is still being read is passed as a promise: browsers allow copying only
 * right after a key or a click. Returns whether it was copied.
 */
export async function copy(what: string, text: string | Promise<string>): Promise<boolean> {
  try {
    // Only on HTTPS and on this machine do browsers offer it.
    if (!navigator.clipboard) throw new Error('this browser copies only on HTTPS or on localhost')
    if (typeof text === 'string') await navigator.clipboard.writeText(text)
    else {
      const content = text.then((read) => new Blob([read], { type: 'text/plain' }))
      await navigator.clipboard.write([new ClipboardItem({ 'text/plain': content })])
    }
    say(`Copied ${what}.`)
    return true
  } catch (error) {
    say(`Not copied: ${(error as Error).message}`)
    return false
  }
}

/** Saves content as a file. */
export function download(name: string, parts: BlobPart[], type: string): void {
  const url = URL.createObjectURL(new Blob(parts, { type }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  // Chromium reads the blob after the click returns.
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}
