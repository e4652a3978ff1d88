import type { Session, TimelineItem } from '@annals/client'
import { writeJson } from '@annals/messages/json'
import { type Block, isShownElsewhere, SessionReader, type ToolCall } from '@annals/messages/session'

/** A session as Markdown, one piece for each entry that the console shows. */
export function conversationMarkdown(
  session: Pick<Session, 'id' | 'configs'>,
  items: TimelineItem[],
): string[] {
  const reader = new SessionReader()
  // Read to the end first: a result far below belongs to its call.
  const entries = items.map((item) => ({ item, read: reader.read(item) }))
  const head = `# Session ${session.id}\n\n${fenced(writeJson(session.configs), 'json')}\n`
  const pieces = entries
    .filter(({ read }) => !isShownElsewhere(read))
    .map(({ item, read }) => {
      const speaker = read.name ? `${read.speaker} ${read.name}` : read.speaker
      const mark = item.retracted_by ? `, retracted by entry ${item.retracted_by}` : ''
      const is_plain =
        read.kind === 'event' && !read.blocks.some(({ kind }) => kind === 'call' || kind === 'state')
      const body =
        is_plain && item.kind === 'event'
          ? fenced(writeJson(item.data), 'json')
          : read.blocks.map((block) => blockText(block)).join('\n')
      return `## ${item.seq}. ${oneLine(speaker)} (${read.created_at}${mark})\n\n${body}\n`
    })
  return [head, ...pieces].map((piece) => `${piece}\n`)
}

function blockText(block: Block): string {
  switch (block.kind) {
    case 'text':
      return `${block.text}\n`
    case 'thinking':
      return `> Thinking: ${(block.text ?? 'hidden by the provider').replaceAll('\n', '\n> ')}\n`
    case 'streamed':
      if (block.is_repeat) return ''
      return blockText({ kind: block.whole.is_thinking ? 'thinking' : 'text', text: block.whole.text })
    case 'state':
      return `**${oneLine(block.title)}** ${oneLine(block.summary)}\n\n${fenced(writeJson(block.value), 'json')}`
    case 'call':
      return block.is_repeat ? '' : callText(block.call)
    case 'result':
      return block.call ? '' : fenced(block.result.text, '')
    case 'medium':
      return `(${block.part.type})\n`
    case 'data':
      return fenced(writeJson(block.value), 'json')
  }
}

function callText({ number, name, verdict, arguments: given, result }: ToolCall): string {
  const state = { ok: 'answered', failed: 'failed', open: 'no result' }[verdict]
  const told = result ? `Result, entry ${result.seq}:\n\n${fenced(result.text, '')}` : ''
  return `**Tool call${number === undefined ? '' : ` ${number}`}: \`${oneLine(name)}\`** (${state})\n\n${fenced(given, 'json')}${told}`
}

/** A block of code whose fence is longer than any run of backticks in the text. */
function fenced(text: string, language: string): string {
  const longest = (text.match(/`+/g) ?? []).reduce((most, run) => Math.max(most, run.length), 2)
  const fence = '`'.repeat(longest + 1)
  return `${fence}${language}\n${text}\n${fence}\n`
}

function oneLine(text: string): string {
  return text.replaceAll(/[\s`]+/g, ' ')
}
