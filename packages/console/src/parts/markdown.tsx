import { marked, type Token, type Tokens } from 'marked'
import { Fragment, memo, type ReactNode, useMemo } from 'react'
import { CopyButton } from './copy_button.tsx'

/**
 * Markdown as React elements. What is read here was written by strangers: it never becomes HTML. The parser gives
 * tokens, each is drawn by its own element, and what none is for, HTML above all, is shown as the text that it is.
 */
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const tokens = useMemo(() => marked.lexer(text, { gfm: true, breaks: true }), [text])
  return <div className="markdown">{blocks(tokens)}</div>
})

function blocks(tokens: Token[]): ReactNode {
  return tokens.map((token, index) => <Fragment key={`${index} ${token.type}`}>{block(token)}</Fragment>)
}

function block(token: Token): ReactNode {
  switch (token.type) {
    case 'heading':
      // A heading of a message is none of the page.
      return <p className={`md-heading is-${(token as Tokens.Heading).depth}`}>{inline(token)}</p>
    case 'paragraph':
      return <p>{inline(token)}</p>
    case 'text':
      return <span>{inline(token)}</span>
    case 'code':
      return <CodeBlock text={(token as Tokens.Code).text} language={(token as Tokens.Code).lang} />
    case 'blockquote':
      return <blockquote>{blocks((token as Tokens.Blockquote).tokens)}</blockquote>
    case 'list':
      return list(token as Tokens.List)
    case 'table':
      return table(token as Tokens.Table)
    case 'hr':
      return <hr />
    case 'space':
    case 'def':
      return null
    default:
      return <p>{token.raw}</p>
  }
}

function list({ items, ordered, start }: Tokens.List): ReactNode {
  const drawn = items.map((item, index) => (
    <li key={index}>
      {item.task && <span aria-hidden="true">{item.checked ? '☑ ' : '☐ '}</span>}
      {blocks(item.tokens)}
    </li>
  ))
  return ordered ? <ol start={start === '' ? 1 : start}>{drawn}</ol> : <ul>{drawn}</ul>
}

function table({ header, rows, align }: Tokens.Table): ReactNode {
  const cell = (one: Tokens.TableCell, column: number, Element: 'td' | 'th') => (
    <Element key={column} className={align[column] === 'right' ? 'is-right' : undefined}>
      {inline(one)}
    </Element>
  )
  return (
    <div className="md-table">
      <table>
        <thead>
          <tr>{header.map((one, column) => cell(one, column, 'th'))}</tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>{row.map((one, column) => cell(one, column, 'td'))}</tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** The inline tokens of a block, or its text where it has none. */
function inline(token: { tokens?: Token[]; text?: string; raw?: string }): ReactNode {
  if (!token.tokens) return token.text ?? token.raw
  return token.tokens.map((one, index) => <Fragment key={`${index} ${one.type}`}>{span(one)}</Fragment>)
}

function span(token: Token): ReactNode {
  switch (token.type) {
    case 'strong':
      return <strong>{inline(token as Tokens.Strong)}</strong>
    case 'em':
      return <em>{inline(token as Tokens.Em)}</em>
    case 'del':
      return <del>{inline(token as Tokens.Del)}</del>
    case 'codespan':
      return <code>{(token as Tokens.Codespan).text}</code>
    case 'br':
      return <br />
    case 'link':
      return <OutsideLink href={(token as Tokens.Link).href}>{inline(token as Tokens.Link)}</OutsideLink>
    case 'image':
      // Fetching it would tell a stranger that somebody reads this.
      return (
        <OutsideLink href={(token as Tokens.Image).href}>
          🖼 {(token as Tokens.Image).text || 'image'}
        </OutsideLink>
      )
    case 'text':
      return inline(token as Tokens.Text)
    case 'escape':
      return (token as Tokens.Escape).text
    default:
      return token.raw
  }
}

/** A link out of the console, for the two schemes that lead to pages. Its address is shown beside it. */
export function OutsideLink({ href, children }: { href: string; children: ReactNode }) {
  if (!/^https?:\/\//i.test(href)) return <span title={href}>{children}</span>
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow" title={href}>
      {children}
    </a>
  )
}

function CodeBlock({ text, language }: { text: string; language: string | undefined }) {
  return (
    <div className="code-block">
      <div className="code-head">
        <span>{language || 'code'}</span>
        <CopyButton text={() => text}>Copy</CopyButton>
      </div>
      <pre tabIndex={0} role="region" aria-label={`${language || 'Code'} block`}>
        {text}
      </pre>
    </div>
  )
}
