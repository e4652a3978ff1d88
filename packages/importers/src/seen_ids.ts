const IDS_MAX = 750_000
const SLOTS_MIN = 16

/**
 * UUIDs that were there: 52 bits of each, in 10 to 15 bytes. Of a hundred thousand ids, one passes for another once in a
 * million times. It knows the first 750,000, so that memory stays bounded.
 */
export class SeenIds {
  private slots = new Float64Array(SLOTS_MIN)
  private size = 0

  /** Adds an id, and returns whether it is new. One that comes after too many is always new. */
  add(id: string): boolean {
    // The thirteenth digit of a UUID is its version.
    const bits = Number.parseInt(id.slice(0, 8) + id.slice(9, 13) + id.slice(15, 16), 16) || 1
    const at = this.placeOf(bits)
    if (this.slots[at] === bits) return false
    if (this.size >= IDS_MAX) return true
    this.slots[at] = bits
    this.size += 1
    if (5 * this.size > 4 * this.slots.length) this.grow()
    return true
  }

  /** Where an id is, or has its place. */
  private placeOf(bits: number): number {
    const { slots } = this
    let at = bits % slots.length
    while (slots[at] !== 0 && slots[at] !== bits) at = at + 1 < slots.length ? at + 1 : 0
    return at
  }

  private grow(): void {
    const { slots } = this
    this.slots = new Float64Array(Math.floor(1.5 * slots.length))
    for (const bits of slots) if (bits !== 0) this.slots[this.placeOf(bits)] = bits
  }
}
