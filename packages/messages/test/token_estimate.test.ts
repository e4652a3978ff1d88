import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import { describe, expect, it } from 'vitest'
import { estimateTokens } from '../src/index.js'

const file = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')

describe('an estimate of tokens', () => {
  it.each([
    ['prose', file('docs/messages.md').slice(0, 10_000)],
    ['code', file('packages/messages/src/blob_reading.ts')],
    ['JSON', file('packages/server/demo/sessions.json').slice(0, 20_000)],
  ])('is within a seventh of the count for %s', (_what, text) => {
    const share = estimateTokens(text) / countTokens(text)
    expect(share).toBeGreaterThan(6 / 7)
    expect(share).toBeLessThan(8 / 7)
  })

  it.each([
    ['German', 'Der Kunde möchte seinen Flug umbuchen, weil die Verbindung gestrichen wurde.'],
    ['French', 'Le client souhaite modifier sa réservation car le vol a été annulé.'],
    ['Russian', 'Клиент хочет изменить бронирование, потому что рейс был отменён.'],
    ['Greek', 'Ο πελάτης θέλει να αλλάξει την κράτησή του επειδή η πτήση ακυρώθηκε.'],
    ['Arabic', 'يريد العميل تغيير حجزه لأن الرحلة ألغيت.'],
    ['Hindi', 'ग्राहक अपनी बुकिंग बदलना चाहता है क्योंकि उड़ान रद्द कर दी गई थी।'],
    ['Chinese', '由于航班取消，客户希望更改预订。请检查是否仍然可以更改，并告知费用。'],
    ['Japanese', 'フライトがキャンセルされたため、お客様は予約の変更を希望しています。'],
    ['Korean', '항공편이 취소되어 고객이 예약을 변경하고 싶어합니다.'],
  ])('is within a third of the count for %s', (_language, text) => {
    const share = estimateTokens(text) / countTokens(text)
    expect(share).toBeGreaterThan(2 / 3)
    expect(share).toBeLessThan(4 / 3)
  })

  it('is a whole number for any text, 0 for none, and never more than its bytes', () => {
    expect(estimateTokens('')).toBe(0)
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const tokens = estimateTokens(text)
        expect(Number.isInteger(tokens)).toBe(true)
        expect(tokens).toBeGreaterThanOrEqual(0)
        expect(tokens).toBeLessThanOrEqual(Buffer.byteLength(text))
      }),
    )
  })
})
