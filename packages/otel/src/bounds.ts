import { ExactNumber } from '@annals/messages/json'
import { Unreadable } from './telemetry.js'

/** Values of attributes in one request, lists and members included. */
const VALUES_MAX = 400_000
/** An object that is read takes as much as so many of them. */
const MESSAGE_VALUES = 4
/** How deep the value of an attribute may nest. */
const DEPTH_MAX = 48

/** What one request may cost, and which of its spans or records were refused. */
export class Bounds {
  private values = 0
  refused = 0
  reason = ''

  /** Counts a message of OTLP. @throws Unreadable if the request has too much */
  message(): void {
    this.values += MESSAGE_VALUES
    if (this.values > VALUES_MAX)
      throw new Unreadable(`The request has more than ${VALUES_MAX} values. Send smaller batches.`, true)
  }

  /** Counts a value of an attribute. @throws Unreadable, TooDeep */
  value(depth: number): void {
    this.values -= MESSAGE_VALUES - 1
    this.message()
    if (depth > DEPTH_MAX) throw new TooDeep(`an attribute nests deeper than ${DEPTH_MAX} levels`)
  }

  /** Reads an item that may be refused without the others; undefined if it is. */
  each<Item>(read: () => Item): Item | undefined {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof TooDeep)) throw error
      this.refuse(error.message)
      return undefined
    }
  }

  refuse(reason: string): void {
    this.refused += 1
    this.reason ||= reason
  }
}

class TooDeep extends Error {}

/** A whole number: exact, also beyond 2^53. */
export function wholeNumber(value: bigint): unknown {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : new ExactNumber(String(value))
}

/** Any number, those that JSON does not have as text. */
export function anyNumber(value: number): unknown {
  return Number.isFinite(value) ? value : String(value)
}

/** A text that can be stored: PostgreSQL has no U+0000, and no half of a pair of surrogates. */
export function storable(text: string): string {
  return (text.includes('\0') ? text.replaceAll('\0', '\ufffd') : text).toWellFormed()
}
