import { type RefObject, useEffect, useMemo } from 'react'
import { Finder } from './finder.ts'

const NAME = 'found'
/** Marks at once; nobody sees more. */
const MARKS_MAX = 2_000

/** What a reader looks for, marked in the texts of the elements that the selector names; undefined: nothing. */
export function useFinder(
  text: string,
  within: RefObject<HTMLElement | null>,
  selector: string,
): Finder | undefined {
  const finder = useMemo(() => (text.trim() === '' ? undefined : new Finder(text)), [text])
  useMarks(within, selector, finder)
  return finder
}

/**
 * Marks what is looked for in the texts below an element, whatever draws them: the browser paints ranges, and no
 * element changes. Browsers that cannot do this still mark the entries' numbers.
 */
function useMarks(within: RefObject<HTMLElement | null>, selector: string, finder: Finder | undefined): void {
  useEffect(() => {
    const root = within.current
    if (!root || !finder || !('highlights' in CSS)) return
    let frame = 0
    const mark = () => {
      frame = 0
      CSS.highlights.set(NAME, new Highlight(...foundIn(root, selector, finder)))
    }
    const later = () => {
      frame ||= requestAnimationFrame(mark)
    }
    const changes = new MutationObserver(later)
    changes.observe(root, { childList: true, characterData: true, subtree: true })
    mark()
    return () => {
      changes.disconnect()
      cancelAnimationFrame(frame)
      CSS.highlights.delete(NAME)
    }
  }, [within, selector, finder])
}

function foundIn(root: HTMLElement, selector: string, finder: Finder): Range[] {
  const ranges: Range[] = []
  for (const element of root.querySelectorAll(selector)) {
    const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT)
    while (texts.nextNode() && ranges.length < MARKS_MAX) {
      const node = texts.currentNode
      for (const [start, end] of finder.placesIn(node.nodeValue ?? '')) {
        const range = document.createRange()
        range.setStart(node, start)
        range.setEnd(node, end)
        ranges.push(range)
      }
    }
  }
  return ranges
}
