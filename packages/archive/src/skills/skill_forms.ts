import { isSkillMd, SKILL_MD, skillName, wrongSkillPaths } from '@annals/learning'
import type { LineCheck } from '../columns.js'

/** When a skill is downloaded, names and paths become file names, and types become headers. */
export const SKILL_FORMS: Readonly<Record<string, LineCheck>> = {
  name: {
    takes: 'a name of a skill: 1 to 64 lower-case letters, digits and single hyphens',
    fits: (value) => typeof value === 'string' && skillName(value) === value,
  },
}

export const SKILL_FILE_FORMS: Readonly<Record<string, LineCheck>> = {
  path: {
    takes: 'a relative path that is the same on all systems',
    fits: (value) =>
      typeof value === 'string' && !wrongSkillPaths(isSkillMd(value) ? [value] : [value, SKILL_MD]),
  },
  mime: { takes: 'a media type such as text/plain', fits: (value) => MIME.test(String(value)) },
  sha256: { takes: 'a SHA-256 in hex', fits: (value) => /^[0-9a-f]{64}$/.test(String(value)) },
}

const MIME = /^[\w!#$&^.+-]{1,127}\/[\w!#$&^.+-]{1,127}$/
