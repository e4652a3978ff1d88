const IDS_MAX = 750_000
const SLOTS_MIN = 16

/**
 * UUIDs that were there: 32 bits of each, in 5 to 11 bytes. Of ten thousand ids, one in a hundred times one passes for another.
 * It knows the first 750,000, so that memory stays bounded.
 */
export class SeenIds {
  private slots = new Uint32Array(SLOTS_MIN)
  private size = 0

  /** Adds an id, and returns whether it is new. One that comes after too many is always new. */
  add(id: string): boolean {
    const bits = Number.parseInt(id.slice(0, 8), 16) || 1
    const at = this.placeOf(bits)
    if (this.slots[at] === bits) return false
    if (this.size >= IDS_MAX) return true
    this.slots[at] = bits
    this.size += 1
    if (4 * this.size > 3 * this.slots.length) this.grow()
    return true
  }

  /** Where an id is, or has its place. */
  private placeOf(bits: number): number {
    const last = this.slots.length - 1
    let at = bits & last
    while (this.slots[at] !== 0 && this.slots[at] !== bits) at = (at + 1) & last
    return at
  }

  private grow(): void {
    const { slots } = this
    this.slots = new Uint32Array(2 * slots.length)
    for (const bits of slots) if (bits !== 0) this.slots[this.placeOf(bits)] = bits
  }
}
