import { EmptyBody } from '../contract/schema.js'
import { checkObjectBytes } from '../http/request/json_parameters.js'
import { type TakeBody, whole } from '../http/request/taken_body.js'
import { ConfigsBody, CopySessionBody, CreateSessionBody, UpdateSessionBody } from './session_schema.js'

/** The other fields of a session; its configs pass through as text. */
interface GivenNames {
  user: string | null | undefined
  use_uuid: string | null | undefined
}

const takeSession: TakeBody<CreateSessionBody, GivenNames> = ({ user, use_uuid, configs }, text) => {
  checkObjectBytes('/configs', configs, text)
  return { user, use_uuid }
}

const takeCopy: TakeBody<CopySessionBody, GivenNames & { up_to_seq: number | undefined }> = (
  { up_to_seq, user, use_uuid, configs },
  text,
) => {
  checkObjectBytes('/configs', configs, text)
  return { user, use_uuid, up_to_seq: up_to_seq ?? undefined }
}

const checkConfigs: TakeBody<ConfigsBody, void> = ({ configs }, text) =>
  checkObjectBytes('/configs', configs, text)

/** By operation: how its body is checked, and what is taken from it. */
export const SESSION_BODIES = {
  createSession: [CreateSessionBody, takeSession],
  flushSession: whole(EmptyBody),
  copySession: [CopySessionBody, takeCopy],
  updateSession: whole(UpdateSessionBody),
  replaceConfigs: [ConfigsBody, checkConfigs],
  mergeConfigs: [ConfigsBody, checkConfigs],
} as const
