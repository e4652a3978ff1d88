import { Fragment, memo, type ReactNode, useMemo } from 'react'
import { CopyButton } from './copy_button.tsx'
import { type MarkdownNode, parseMarkdown } from './parse_markdown.ts'

/**
 * Markdown as React elements. The content comes from strangers, so it never becomes HTML. The parser returns tokens;
 * each is rendered by its own element, and everything else, above all HTML, is shown as text.
 */
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const nodes = useMemo(() => parseMarkdown(text), [text])
  return <div className={nodes ? 'markdown' : 'markdown md-plain'}>{nodes ? drawn(nodes) : text}</div>
})

function drawn(nodes: MarkdownNode[]): ReactNode {
  return nodes.map((node, index) => <Fragment key={`${index} ${node.token.type}`}>{element(node)}</Fragment>)
}

function element({ token, children }: MarkdownNode): ReactNode {
  switch (token.type) {
    case 'heading_open':
      // A message's heading is not a heading of the page.
      return <p className={`md-heading is-${token.tag.slice(1)}`}>{drawn(children)}</p>
    case 'paragraph_open':
      // A list without blank lines between its items has no paragraphs.
      return token.hidden ? <span>{drawn(children)}</span> : <p>{drawn(children)}</p>
    case 'fence':
    case 'code_block':
      return <CodeBlock text={token.content.replace(/\n$/, '')} language={token.info.trim()} />
    case 'blockquote_open':
      return <blockquote>{drawn(children)}</blockquote>
    case 'bullet_list_open':
      return <ul>{drawn(children)}</ul>
    case 'ordered_list_open':
      return <ol start={Number(token.attrGet('start') ?? 1)}>{drawn(children)}</ol>
    case 'list_item_open':
      return <li>{drawn(children)}</li>
    case 'hr':
      return <hr />
    case 'strong_open':
      return <strong>{drawn(children)}</strong>
    case 'em_open':
      return <em>{drawn(children)}</em>
    case 's_open':
      return <del>{drawn(children)}</del>
    case 'code_inline':
      return <code>{token.content}</code>
    case 'softbreak':
    case 'hardbreak':
      return <br />
    case 'link_open':
      return (
        <OutsideLink href={String(token.attrGet('href'))} text={textOf(children)}>
          {drawn(children)}
        </OutsideLink>
      )
    case 'image':
      // Fetching it would tell a stranger that this is being read.
      return (
        <OutsideLink href={String(token.attrGet('src'))} text={token.content}>
          🖼 {token.content || 'image'}
        </OutsideLink>
      )
    default:
      return tableElement({ token, children })
  }
}

function tableElement({ token, children }: MarkdownNode): ReactNode {
  const alignment = token.attrGet('style') === 'text-align:right' ? 'is-right' : undefined
  switch (token.type) {
    case 'table_open':
      return (
        <div className="md-table">
          <table>{drawn(children)}</table>
        </div>
      )
    case 'thead_open':
      return <thead>{drawn(children)}</thead>
    case 'tbody_open':
      return <tbody>{drawn(children)}</tbody>
    case 'tr_open':
      return <tr>{drawn(children)}</tr>
    case 'th_open':
      return <th className={alignment}>{drawn(children)}</th>
    case 'td_open':
      return <td className={alignment}>{drawn(children)}</td>
    default:
      return children.length > 0 ? drawn(children) : token.content
  }
}

const ADDRESS_LENGTH_MAX = 120

/** An external link, only for http and https. Its address is shown beside it, unless that is what the link says. */
export function OutsideLink(props: { href: string; text: string; children: ReactNode }) {
  const { href, text, children } = props
  if (!/^https?:\/\//i.test(href)) return <span title={href}>{children}</span>
  // As the browser reads it: a host of other letters is spelt in ASCII.
  const address = URL.canParse(href) ? new URL(href).href : href
  return (
    <>
      <a href={href} target="_blank" rel="noopener noreferrer nofollow" title={address}>
        {children}
      </a>
      {text !== address && text !== address.replace(/\/$/, '') && (
        <span className="link-address"> ({shortened(address)})</span>
      )}
    </>
  )
}

/** With its host, which stands in front. */
function shortened(address: string): string {
  return address.length > ADDRESS_LENGTH_MAX ? `${address.slice(0, ADDRESS_LENGTH_MAX)}…` : address
}

function textOf(nodes: MarkdownNode[]): string {
  return nodes.map(({ token, children }) => token.content + textOf(children)).join('')
}

function CodeBlock({ text, language }: { text: string; language: string | undefined }) {
  return (
    <div className="code-block">
      <div className="code-head">
        <span>{language || 'code'}</span>
        <CopyButton what="the code" text={() => text}>
          Copy
        </CopyButton>
      </div>
      <pre tabIndex={0} role="region" aria-label={`${language || 'Code'} block`}>
        {text}
      </pre>
    </div>
  )
}
