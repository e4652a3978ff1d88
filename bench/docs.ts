import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { drawChart } from './chart.ts'
import type { Results } from './results.ts'
import { ROOT } from './root.ts'
import { describeMachine, markdownTable } from './table.ts'

const PAGE = `${ROOT}docs/benchmarks.md`
const DATA = `${ROOT}docs/benchmarks.json`
const CHART = `${ROOT}docs/images/benchmarks.svg`
const MARKED = /(<!-- results -->\n)[\s\S]*?(<!-- \/results -->)/

/** Writes results into the docs: the data, the table in the page, the chart. Parts that did not run stay. */
export async function writeDocs(results: Results, order: string[]): Promise<void> {
  const earlier = JSON.parse(await readFile(DATA, 'utf8').catch(() => '{"parts":{}}')) as Results
  const parts = { ...earlier.parts, ...results.parts }
  const sorted = order.flatMap((name) => (parts[name] ? [[name, parts[name]] as const] : []))
  const all: Results = { ...results, parts: Object.fromEntries(sorted) }
  await writeFile(DATA, `${JSON.stringify(all, null, 2)}\n`)
  await mkdir(new URL('.', `file://${CHART}`), { recursive: true })
  await writeFile(CHART, drawChart(all))
  const text = await readFile(PAGE, 'utf8')
  await writeFile(
    PAGE,
    text.replace(MARKED, (_, open, close) => `${open}\n${page(all)}\n\n${close}`),
  )
}

/** What stands between the marks of the page. */
function page(results: Results): string {
  return `![Each figure against what it must reach and what it aims for](images/benchmarks.svg)

${describeMachine(results)}

${markdownTable(results)}`
}
