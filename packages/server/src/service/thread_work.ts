import type { BodyParts } from '@annals/kits/http/request/read_body.js'
import { bodyWork } from '@annals/kits/http/request/take_on_thread.js'
import type { ThreadWork } from '@annals/kits/threads/work_thread.js'
import { ACCESS_BODIES } from '../access/token_routes.js'
import { readMessageForm } from '../blobs/read_form.js'
import { EXPORT_WORK } from '../exports/export_work.js'
import { LEARNING_BODIES, readSkillForm } from '../learning/learning_bodies.js'
import { LEARNING_WORK } from '../learning/learning_work.js'
import { LOG_BODIES } from '../log/append_bodies.js'
import { LOG_WORK } from '../log/log_work.js'
import { PEOPLE_BODIES } from '../people/people_schema.js'
import { PROJECT_BODIES } from '../projects/project_schema.js'
import { REDACTION_BODIES } from '../redaction/redaction_schema.js'
import { redactionWork, rewriteTaken } from '../redaction/redaction_work.js'
import { RUN_BODIES } from '../runs/run_schema.js'
import { SEARCH_WORK } from '../search/search_work.js'
import { SESSION_BODIES } from '../sessions/session_schema.js'
import { TOOL_WORK } from '../tools/tool_work.js'
import { WEBHOOK_BODIES } from '../webhooks/webhook_schema.js'

export const BODIES: Readonly<Record<string, BodyParts>> = {
  ...LOG_BODIES,
  ...SESSION_BODIES,
  ...LEARNING_BODIES,
  ...WEBHOOK_BODIES,
  ...PROJECT_BODIES,
  ...RUN_BODIES,
  ...ACCESS_BODIES,
  ...PEOPLE_BODIES,
  ...REDACTION_BODIES,
}

const FORMS = {
  addMessage: { read: readMessageForm, attaches: true },
  createSkill: { read: readSkillForm },
} as const

/** Work of the second thread: bodies and forms, and each module's own. */
export const THREAD_WORK: ThreadWork = {
  ...bodyWork(BODIES, FORMS, rewriteTaken),
  ...redactionWork(FORMS),
  ...LOG_WORK,
  ...LEARNING_WORK,
  ...SEARCH_WORK,
  ...TOOL_WORK,
  ...EXPORT_WORK,
}
