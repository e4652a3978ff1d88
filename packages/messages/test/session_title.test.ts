import { describe, expect, it } from 'vitest'
import { indexCalls, SessionReader, sessionTitle } from '../src/session/index.js'

const CAVEAT = '<local-command-caveat>Caveat: run by the user.</local-command-caveat>'
const LOCAL =
  '<command-name>/plugin</command-name>\n<command-message>plugin</command-message>\n<command-args></command-args>'
const OUTPUT = '<local-command-stdout>(no content)</local-command-stdout>'
const REMINDER = '<system-reminder>Be brief.</system-reminder>'

/** The title that readers of a log find, and the one that the index of calls keeps: they are the same. */
function titleOf(...said: Array<string | string[]>): string | undefined {
  const log = said.map((content, index) => ({
    id: `m${index}`,
    kind: 'message' as const,
    parent_id: null,
    role: 'user' as const,
    seq: index + 1,
    created_at: '2026-11-27T10:00:00.000000Z',
    format: 'anthropic' as const,
    blob: {
      role: 'user',
      content: typeof content === 'string' ? content : content.map((text) => ({ type: 'text', text })),
    },
  }))
  const reader = new SessionReader()
  const title = sessionTitle(
    {},
    log.map((entry) => reader.read(entry)),
  )
  const empty = { last_seq: 0, calls: [], question: null, question_seq: null, stream: '' }
  expect(indexCalls(empty, log).question ?? undefined).toBe(title)
  return title
}

describe('the title of a session', () => {
  it('is what a user asked for, not what a local command of Claude Code left', () => {
    expect(titleOf(CAVEAT, LOCAL, OUTPUT, 'Fix the tests.\nAll of them.')).toBe('Fix the tests. All of them.')
    expect(titleOf([REMINDER, 'Fix the tests.'])).toBe('Fix the tests.')
    expect(titleOf(CAVEAT, LOCAL)).toBeUndefined()
  })

  it('is not what an agent put before it, and names a skill that stands alone', () => {
    const opened = '<ide_opened_file>The user opened the file a.ts in the IDE.</ide_opened_file>'
    const skill = '<skill name="tidy" location="/home/mia/SKILL.md">\nReferences are relative.\n</skill>'
    expect(titleOf([opened, 'Fix the tests.'])).toBe('Fix the tests.')
    expect(titleOf(`${opened}\n<environment_context>\n<cwd>/a</cwd>\n</environment_context>\nFix it.`)).toBe(
      'Fix it.',
    )
    expect(titleOf('<user_instructions>Be brief.</user_instructions>', 'Fix it.')).toBe('Fix it.')
    expect(titleOf(skill)).toBe('tidy')
    expect(titleOf(`${skill}\n\nOnly the tests.`)).toBe('Only the tests.')
    expect(titleOf('<div>Why is this wide?</div>')).toBe('<div>Why is this wide?</div>')
    expect(titleOf('<skill name="tidy"> is not closed')).toBe('<skill name="tidy"> is not closed')
  })

  it('names a command with its arguments', () => {
    const command = '<command-message>review</command-message>\n<command-name>/review</command-name>'
    expect(titleOf(command)).toBe('/review')
    expect(titleOf(`${command}\n<command-args>PR 17</command-args>`)).toBe('/review PR 17')
    expect(titleOf('<command-message>cut off')).toBe('<command-message>cut off')
  })
})
