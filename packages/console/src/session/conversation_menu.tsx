import type { Session } from '@annals/client'
import { useProject } from '../access/project_context.tsx'
import { copy, download } from '../parts/clipboard.ts'
import { Menu, MenuItem } from '../parts/menu.tsx'
import { say } from '../parts/notice.tsx'
import { conversationFile, FILE_KIND_NAMES, FILE_KINDS, type FileKind, MEDIA_TYPES } from './conversation.ts'
import { FORMAT_NAMES, type Format } from './converted_messages.ts'

/** Copies or saves the whole conversation: as it is stored, or in the chosen format. */
export function ConversationMenu({ session, format }: { session: Session; format: Format | undefined }) {
  const project = useProject()
  const read = (kind: FileKind) => conversationFile(project, session, kind, format)
  const nameOf = (kind: FileKind) =>
    kind !== 'md' && format ? `${FORMAT_NAMES[format]} ${FILE_KIND_NAMES[kind]}` : FILE_KIND_NAMES[kind]
  const save = async (kind: FileKind) => {
    say('Reading the whole conversation…')
    try {
      const parts = await read(kind)
      const format_part = kind !== 'md' && format ? `.${format}` : ''
      download(`session-${session.id}${format_part}.${kind}`, parts, MEDIA_TYPES[kind])
      say(`Downloaded the conversation as ${nameOf(kind)}.`)
    } catch (error) {
      say(`Not downloaded: ${(error as Error).message}`)
    }
  }
  return (
    <Menu label="Whole conversation" content="Conversation">
      {(['md', 'json'] as const).map((kind) => (
        <MenuItem
          key={kind}
          onChoose={() =>
            void copy(
              `the conversation as ${nameOf(kind)}`,
              read(kind).then((parts) => parts.join('')),
            )
          }
        >
          Copy as {nameOf(kind)}
        </MenuItem>
      ))}
      {FILE_KINDS.map((kind) => (
        <MenuItem key={kind} onChoose={() => void save(kind)}>
          Download {nameOf(kind)}
        </MenuItem>
      ))}
    </Menu>
  )
}
