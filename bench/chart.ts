import type { MeasuredFigure, Results } from './results.ts'
import { formatValue, isHeadline } from './table.ts'

const WIDTH = 860
const PADDING = 24
const BAR_X = 380
const BAR_WIDTH = 330
const ROW = 26
const BAR = 14

// Its own background, and colours for both themes: legible wherever it is shown.
const STYLE = `
  svg { --page: #ffffff; --edge: #d0d7de; --text: #1f2328; --soft: #59636e; --track: #eaeef2;
    --aim: #1a7f37; --holds: #0969da; --misses: #bc4c00; }
  @media (prefers-color-scheme: dark) {
    svg { --page: #0d1117; --edge: #3d444d; --text: #f0f6fc; --soft: #9198a1; --track: #212830;
      --aim: #3fb950; --holds: #4493f8; --misses: #db6d28; }
  }
  text { font: 13px -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; fill: var(--text); }
  .title { font-size: 15px; font-weight: 600; }
  .soft { fill: var(--soft); font-size: 12px; }
  .page { fill: var(--page); stroke: var(--edge); }
  .track { fill: var(--track); }
  .aim { fill: var(--aim); } .holds { fill: var(--holds); } .misses { fill: var(--misses); }
  .at-least { stroke: var(--text); stroke-width: 2; }
  .wanted { stroke: var(--text); stroke-width: 1.5; stroke-dasharray: 2 2; }`

/** A figure that can be drawn: it has a value and a bound. */
type Bounded = MeasuredFigure & { part: string; value: number; at_least: number }

/** The figures that have bounds, as an SVG: ratios against their yardstick, and the rest against what is allowed. */
export function drawChart(results: Results): string {
  const figures = Object.entries(results.parts).flatMap(([part, { figures }]) =>
    figures.map((figure) => ({ part, ...figure })),
  )
  const bounded = figures.filter(
    (figure): figure is Bounded => figure.value !== undefined && isHeadline(figure),
  )
  const pieces: string[] = []
  let y = PADDING
  for (const [title, better] of PANELS) {
    const chosen = bounded.filter((figure) => figure.better === better)
    if (chosen.length === 0) continue
    pieces.push(text(PADDING, y + 12, title, 'title'))
    y += 34
    const scale = better === 'higher' ? Math.max(...chosen.flatMap(({ value, aim = 0 }) => [value, aim])) : 1
    for (const figure of chosen) {
      pieces.push(drawRow(figure, y, scale))
      y += ROW
    }
    y += 16
  }
  pieces.push(drawLegend(y))
  const height = y + 34
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">
<title>Annals' benchmarks: each figure against what it must reach and what it aims for</title>
<style>${STYLE}
</style>
<rect class="page" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="8"/>
${pieces.join('\n')}
</svg>
`
}

const PANELS = [
  ['Throughput against its yardstick: longer is better', 'higher'],
  ['Latency, memory and start, against what is allowed: shorter is better', 'lower'],
] as const

/** Ratios share one scale; what has a limit is drawn as the share of it that it takes. */
function drawRow(figure: Bounded, y: number, scale: number): string {
  const { part, name, value, unit, better, at_least, aim } = figure
  const place = (amount: number) => {
    const share = better === 'higher' ? amount / scale : amount / at_least
    return Math.round(Math.min(Math.max(share, 0.004), 1) * BAR_WIDTH * 10) / 10
  }
  const top = y + (ROW - BAR) / 2
  const kind = { 'meets the aim': 'aim', MISSES: 'misses' }[figure.verdict as string] ?? 'holds'
  const limit = better === 'lower' ? ` of ${formatValue(at_least, unit)}` : ''
  return [
    text(PADDING, top + 11, `${part}: ${name}`),
    `<rect class="track" x="${BAR_X}" y="${top}" width="${BAR_WIDTH}" height="${BAR}" rx="2"/>`,
    `<rect class="${kind}" x="${BAR_X}" y="${top}" width="${place(value)}" height="${BAR}" rx="2"/>`,
    mark('at-least', BAR_X + place(at_least), top),
    ...(aim === undefined ? [] : [mark('wanted', BAR_X + place(aim), top)]),
    text(BAR_X + BAR_WIDTH + 10, top + 11, `${formatValue(value, unit)}${limit}`),
  ].join('\n')
}

function drawLegend(y: number): string {
  const box = (x: number, kind: string, words: string) =>
    `<rect class="${kind}" x="${x}" y="${y}" width="${BAR}" height="${BAR}" rx="2"/>\n${text(x + 20, y + 11, words, 'soft')}`
  return [
    box(PADDING, 'aim', 'meets the aim'),
    box(PADDING + 130, 'holds', 'holds what it must'),
    box(PADDING + 290, 'misses', 'does not'),
    mark('at-least', BAR_X + 60, y),
    text(BAR_X + 70, y + 11, 'what it must reach, or stay below', 'soft'),
    mark('wanted', BAR_X + 290, y),
    text(BAR_X + 300, y + 11, 'the aim', 'soft'),
  ].join('\n')
}

function mark(kind: string, x: number, top: number): string {
  return `<line class="${kind}" x1="${x}" x2="${x}" y1="${top - 3}" y2="${top + BAR + 3}"/>`
}

function text(x: number, y: number, words: string, kind?: string): string {
  const escaped = words.replace(/[&<>]/g, (character) => `&#${character.charCodeAt(0)};`)
  return `<text x="${x}" y="${y}"${kind ? ` class="${kind}"` : ''}>${escaped}</text>`
}
