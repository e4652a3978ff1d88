import type { TimelineItem } from '@annals/client'
import type { Block, LogEntry, SessionReader } from '@annals/messages/session'
import { Room } from './shortened.js'

/** An entry as a model reads it: who said what, tool calls and results by name, and media by their kind. */
export function shownEntry(reader: SessionReader, item: TimelineItem, characters: number): object {
  const { seq, created_at: at, kind, speaker, name, blocks: all } = reader.read(item as LogEntry)
  const who = kind === 'event' ? { event: speaker } : { message_of: speaker, ...(name !== null && { name }) }
  const retracted = item.retracted_by !== undefined && { retracted_by: item.retracted_by }
  const room = new Room(characters)
  const blocks: object[] = []
  for (const block of all) {
    if (room.is_full) break
    blocks.push(shownBlock(block, room))
  }
  const left_out = all.length - blocks.length
  return { seq, at, ...who, ...retracted, blocks, ...(left_out > 0 && { blocks_left_out: left_out }) }
}

function shownBlock(block: Block, room: Room): object {
  switch (block.kind) {
    case 'text':
      return { text: room.text(block.text) }
    case 'thinking':
      return { thinking: block.text === null ? null : room.text(block.text) }
    case 'streamed':
      return { [block.whole.is_thinking ? 'thinking' : 'text']: room.text(block.text) }
    case 'call': {
      const { id = null, name, arguments: given } = block.call
      return { tool_call: { id: id && room.text(id), name: room.text(name), arguments: room.text(given) } }
    }
    case 'result': {
      const { call, name = call?.name ?? null, result } = block
      const of = { name: name && room.text(name), call_seq: call?.seq ?? null, is_failed: result.is_failed }
      return { tool_result: { ...of, text: room.text(result.text) } }
    }
    case 'medium':
      return { medium: block.part.type }
    case 'data':
    case 'state':
      return { data: room.value(block.value) }
  }
}
