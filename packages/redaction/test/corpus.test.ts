import { expect, test } from 'vitest'
import { DETECTOR_NAMES } from '../src/detectors.js'
import { find, wantedOf } from '../src/find.js'
import { Spans } from '../src/spans.js'
import { negatives, positives, type Sample } from './corpus.js'

const PRECISION_MIN = 0.99
const RECALL_MIN = 0.98

function measured(samples: Sample[]) {
  const all = wantedOf(DETECTOR_NAMES)
  const counts = new Map(DETECTOR_NAMES.map((name) => [name, { right: 0, wrong: 0, missed: 0 }]))
  const faults: string[] = []
  const spans = new Spans()
  for (const { text, found } of samples) {
    const left = [...found]
    find(text, all, spans)
    for (const { from, to, what } of spans.all()) {
      const detector = DETECTOR_NAMES[what]!
      const value = text.slice(from, to)
      const at = left.findIndex((one) => one.detector === detector && one.value === value)
      if (at === -1) {
        counts.get(detector)!.wrong += 1
        faults.push(`${detector} found ${JSON.stringify(value)} in ${JSON.stringify(text)}`)
      } else {
        left.splice(at, 1)
        counts.get(detector)!.right += 1
      }
    }
    for (const { detector, value } of left) {
      counts.get(detector)!.missed += 1
      faults.push(`${detector} missed ${JSON.stringify(value)} in ${JSON.stringify(text)}`)
    }
  }
  return { counts, faults }
}

test('each detector is right in 99 of 100 cases and finds 98 of 100, in a corpus made by hand and by generator', () => {
  const { counts, faults } = measured([...positives(), ...negatives()])
  for (const [name, { right, wrong, missed }] of counts) {
    expect(right + missed, name).toBeGreaterThan(200)
    expect(right / (right + wrong), `${name}: ${faults.slice(0, 20).join('\n')}`).toBeGreaterThanOrEqual(
      PRECISION_MIN,
    )
    expect(right / (right + missed), `${name}: ${faults.slice(0, 20).join('\n')}`).toBeGreaterThanOrEqual(
      RECALL_MIN,
    )
  }
})
