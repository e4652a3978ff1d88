/** Lines of an export, and how many of them are what. */
export interface ExportPiece {
  lines: string[]
  counts: Record<string, number>
}
