import MarkdownIt, { type Token } from 'markdown-it'

/** Longer texts, those of more pieces, and those nested deeper than this are shown as the text that they are. */
const LENGTH_MAX = 100_000
const TOKENS_MAX = 20_000
const NESTING_MAX = 32

const parser = new MarkdownIt({ html: false, breaks: true, linkify: true, maxNesting: NESTING_MAX })
// Only what says that it is an address is one: example.com may be the name of a file.
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false })

/** A piece of a Markdown text with the pieces in it. `token` is what the parser says of it. */
export interface MarkdownNode {
  token: Token
  children: MarkdownNode[]
}

/**
 * The tree of a Markdown text, in time that is linear in its length; undefined where the text is no Markdown that a
 * person wrote, such as thousands of quotes in each other, which would take the page down.
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

/** The parser gives a list in which an opening and a closing token stand around what is between them. */
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
