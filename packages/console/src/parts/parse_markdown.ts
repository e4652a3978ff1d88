import MarkdownIt, { type Token } from 'markdown-it'

/** Texts that are longer, have more pieces, or are nested deeper than this are shown unformatted. */
const LENGTH_MAX = 100_000
const TOKENS_MAX = 20_000
const NESTING_MAX = 32

const parser = new MarkdownIt({ html: false, breaks: true, linkify: true, maxNesting: NESTING_MAX })
// Only explicit URLs become links: example.com may be a file name.
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false })

/** A piece of a Markdown text with its children. `token` is the parser's. */
export interface MarkdownNode {
  token: Token
  children: MarkdownNode[]
}

/**
 * The tree of a Markdown text, in linear time; undefined if no person would write such Markdown, such as thousands of
 * nested quotes, which would freeze the page.
 */
export function parseMarkdown(text: string): MarkdownNode[] | undefined {
  if (text.length > LENGTH_MAX) return undefined
  const tokens = parser.parse(text, {}).flatMap((token) => token.children ?? [token])
  return tokens.length <= TOKENS_MAX && nestingOf(tokens) < NESTING_MAX ? treeOf(tokens) : undefined
}

function nestingOf(tokens: Token[]): number {
  let nesting = 0
  let most = 0
  for (const token of tokens) {
    nesting += token.nesting
    most = Math.max(most, nesting)
  }
  return most
}

/** The parser returns a list, with opening and closing tokens around their content. */
function treeOf(tokens: Token[]): MarkdownNode[] {
  const root: MarkdownNode[] = []
  const open = [root]
  for (const token of tokens) {
    if (token.nesting === -1) {
      open.pop()
      continue
    }
    const node: MarkdownNode = { token, children: [] }
    open.at(-1)!.push(node)
    if (token.nesting === 1) open.push(node.children)
  }
  return root
}
