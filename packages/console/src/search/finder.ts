import type { TimelineItem } from '@annals/client'
import { writeJson } from '@annals/messages/json'
import {
  entryText,
  matchTerms,
  parseSearchQuery,
  placesOfTerms,
  type SearchTerm,
} from '@annals/messages/search'
import { createContext, useContext, useMemo } from 'react'

type Place = [start: number, end: number]

/** What a reader looks for within a session: the text as it stands, or what a search across sessions would find. */
export class Finder {
  private readonly text: string
  private readonly terms: SearchTerm[]

  constructor(query: string) {
    this.text = query.trim().toLowerCase()
    this.terms = termsOf(query)
  }

  /** Whether an entry has it. */
  isIn(item: TimelineItem): boolean {
    const { blob, type, data, meta } = item as unknown as Record<string, unknown>
    // In a plain text a quote is a quote; in a JSON string it is escaped.
    const json = JSON.stringify([blob, type, data, meta]).toLowerCase()
    if (json.includes(this.text)) return true
    if (json.replaceAll('\\"', '"').replaceAll('\\n', ' ').includes(this.text)) return true
    if (this.terms.length === 0) return false
    const searched =
      item.kind === 'message'
        ? { type: null, format: item.format, data: writeJson(item.blob) }
        : { type: item.type, format: null, data: writeJson(item.data) }
    return matchTerms(entryText(searched), this.terms) !== undefined
  }

  /** Where a text that the page shows has it. */
  placesIn(text: string): Place[] {
    const places: Place[] = []
    const lower = text.toLowerCase()
    // Some characters become longer in lower case; their places would be wrong.
    if (lower.length === text.length)
      for (let at = lower.indexOf(this.text); at >= 0; at = lower.indexOf(this.text, at + this.text.length))
        places.push([at, at + this.text.length])
    return places.length > 0 ? places : placesOfTerms(text, this.terms)
  }
}

/** A query that is no search yet, such as a single bracket, has no words. */
function termsOf(query: string): SearchTerm[] {
  try {
    return parseSearchQuery(query)
  } catch {
    return []
  }
}

/** The text searched for in the session on the page. */
export const FinderContext = createContext<Finder | undefined>(undefined)

/** Whether what is looked for is in this text, which the page would otherwise hide. */
export function useIsFound(text: () => string): boolean {
  const finder = useContext(FinderContext)
  // biome-ignore lint/correctness/useExhaustiveDependencies: entries never change
  return useMemo(() => finder !== undefined && finder.placesIn(text()).length > 0, [finder])
}
