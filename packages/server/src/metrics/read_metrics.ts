import { Counter, Gauge, type MetricConfiguration, type Registry } from 'prom-client'

type Read = () => number | Iterable<readonly [label: string, value: number]>

/**
 * Makes metrics that are read when somebody asks for them: a number, or one for each value of `label`.
 * `aggregator`: how the workers' values become one; by default their sum.
 */
export function readMetrics(
  registry: Registry,
  label?: string,
  aggregator: MetricConfiguration<string>['aggregator'] = 'sum',
) {
  const make = (Kind: typeof Counter | typeof Gauge) => (name: string, help: string, read: Read) => {
    const labelNames = label === undefined ? [] : [label]
    new Kind({
      ...{ name, help, labelNames, aggregator, registers: [registry] },
      collect(this: Counter | Gauge) {
        const values = read()
        this.reset()
        if (typeof values === 'number') this.inc(values)
        else for (const [labelled, value] of values) this.inc({ [label!]: labelled }, value)
      },
    })
  }
  return { gauge: make(Gauge), counter: make(Counter) }
}
