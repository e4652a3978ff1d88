import { writeJson } from '@annals/messages/json'
import type { Command } from 'commander'
import { type Paint, painter } from './paint.js'
import { visibleJson } from './visible.js'

/** Options of every command that prints something. */
export interface OutputOptions {
  json?: boolean
}

/** Adds `--json` and `--no-json`. */
export function withOutput(command: Command): Command {
  return command
    .option('--json', 'print JSON lines (the default in a pipe or a file)')
    .option('--no-json', 'print for people, even in a pipe or a file')
}

/** How a command prints: for programs or for people, and for people with which width and colours. */
export interface Output {
  json: boolean
  width: number
  paint: Paint
  /** One value as a JSON line, with every digit that the service returned. */
  value(value: unknown): void
  lines(lines: string[]): void
}

/** The requested output: JSON unless stdout is a terminal. */
export function openOutput({ json }: OutputOptions): Output {
  const { stdout } = process
  const write = (text: string) => void stdout.write(text)
  return {
    json: json ?? !stdout.isTTY,
    width: widthOfTerminal(),
    paint: painter(stdout),
    value: (value) => write(`${visibleJson(writeJson(value))}\n`),
    lines: (lines) => write(lines.map((line) => `${line}\n`).join('')),
  }
}

/** A file has no width; text for people in it should not be cut off, but prose still wrapped. */
function widthOfTerminal(): number {
  const asked = Number(process.env.COLUMNS)
  if (process.stdout.isTTY) return process.stdout.columns || 80
  return asked > 0 ? asked : 200
}

/** Prints a note for people, apart from the output. */
export function tell(sentence: string): void {
  process.stderr.write(`${painter(process.stderr)('dim', sentence)}\n`)
}
