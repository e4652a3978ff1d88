import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { describe, expect, it } from 'vitest'
import { Markdown } from '../src/parts/markdown.tsx'
import { parseMarkdown } from '../src/parts/parse_markdown.ts'

const html = (text: string) => renderToStaticMarkup(createElement(Markdown, { text }))
/** What a reader sees: the text between the tags. */
const seen = (text: string) =>
  html(text)
    .replace(/<[^<>]*>/g, '')
    .replaceAll('&gt;', '>')
    .replaceAll('&lt;', '<')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&')

describe('Markdown', () => {
  it('becomes elements', () => {
    expect(html('# A\n\nb **c** *d* ~~e~~ `f`\ng')).toBe(
      '<div class="markdown"><p class="md-heading is-1">A</p><p>b <strong>c</strong> <em>d</em> <del>e</del> <code>f</code><br/>g</p></div>',
    )
    expect(html('- a\n- b\n\n3. c')).toContain(
      '<ul><li><span>a</span></li><li><span>b</span></li></ul><ol start="3"><li><span>c</span></li></ol>',
    )
    expect(html('> a')).toContain('<blockquote><p>a</p></blockquote>')
    expect(html('|a|b|\n|-|-:|\n|c|d|')).toContain('<tr><td>c</td><td class="is-right">d</td></tr>')
    expect(html('```sh\nls <x>\n```')).toMatch(/<span>sh<\/span>.*<pre[^>]*>ls &lt;x&gt;<\/pre>/)
  })

  it('links to pages alone, and loads nothing', () => {
    expect(html('[a](https://a.example/) https://b.example/c')).toMatch(
      /<a href="https:\/\/a\.example\/" target="_blank" rel="noopener noreferrer nofollow"[^>]*>a<\/a><span class="link-address"> \(https:\/\/a\.example\/\)<\/span> <a href="https:\/\/b\.example\/c"/,
    )
    for (const text of [
      '[a](javascript:alert(1))',
      '[a](ftp://a.example)',
      '<script>a</script>',
      'a.example',
    ])
      expect(html(text), text).not.toMatch(/<(?:a|script)\b/)
    expect(html('![a](https://a.example/b.png)')).not.toContain('<img')
  })

  it.each([
    ['quotes in each other', '>', ''],
    ['quotes with spaces', '> ', ''],
    ['lists in each other', '- ', ''],
    ['emphasis that no one ends', '*a_', ''],
    ['emphasis that is ended at last', '*a ', 'b* '],
    ['strong that is ended at last', '**a ', 'b** '],
    ['brackets', '[', ']'],
    ['beginnings of links', '[a](', ''],
    ['images in each other', '![', '](b)'],
    ['ticks', '`` ` ', ''],
    ['cells of a table', '|a', '|\n|-'],
    ['beginnings of tags', '<a b="', ''],
    ['entities', '&#x', ''],
    ['tildes', '~~a ', '~'],
    ['backslashes', '\\', ''],
    ['addresses', 'http://a', ''],
    ['line feeds', 'a\n=\n', ''],
  ])('of one repeated piece never takes the page down: %s', (_name, piece, after) => {
    for (const length of [100, 2_400, 20_000, 99_000]) {
      const text = piece.repeat(length / piece.length / 2) + after.repeat(length / piece.length / 2)
      const nodes = parseMarkdown(text)
      expect(nodes === undefined || depthOf(nodes) <= 32).toBe(true)
      if (length <= 2_400) expect(html(text)).not.toBe('')
    }
  })

  it('that is nested deeper or longer than what people write is shown as it was written', () => {
    for (const text of ['>'.repeat(2_400), `${'> '.repeat(2_400)}a`, '*a '.repeat(99) + 'a* '.repeat(99)])
      expect(seen(text), text.slice(0, 20)).toBe(text)
    const long = 'a **b** '.repeat(20_000)
    expect(seen(long)).toBe(long)
  })
})

function depthOf(nodes: ReturnType<typeof parseMarkdown> & object): number {
  return 1 + nodes.reduce((most, { children }) => Math.max(most, children.length && depthOf(children)), 0)
}
