import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MESSAGE_FORMATS } from '../../src/index.js'
import { rendered, storedAs } from '../stored_run.js'
import { conversation, toldIn } from './conversations.js'
import { brokenRules } from './provider_rules.js'

describe('the check of the providers’ rules', () => {
  it.each(MESSAGE_FORMATS)(
    'finds that many conversations cannot be sent as they are stored in %s',
    (format) => {
      const conversations = fc.sample(conversation, { numRuns: 100, seed: 1 })
      const broken = conversations.filter(
        (steps) => brokenRules(format, rendered(storedAs(format, toldIn(format, steps)), format)).length > 0,
      )
      expect(broken.length).toBeGreaterThan(40)
    },
  )
})
