import { DECEIVING } from '@annals/messages/json'
import type { Component, ElementType, ExoticComponent, Key, ReactElement, ReactNode } from 'react'
import { Fragment, jsx as make, jsxs as makeAll, type JSX as React } from 'react/jsx-runtime'

/*
 * What the compiler calls for each element of the console, instead of React's own: so that no text that somebody stored
 * can deceive, wherever it is drawn. Characters that change how a text looks, or that cannot be seen, are shown as their
 * names, and a text that is written from right to left does not reorder what stands beside it.
 */

export { Fragment }

export declare namespace JSX {
  /** A component that returned a bare text would draw it past all this. */
  type ElementType =
    | keyof React.IntrinsicElements
    | ExoticComponent<never>
    | ((props: never) => Exclude<ReactNode, string | Iterable<ReactNode>> | ReactElement[])
    | (new (
        props: never,
      ) => Component)
  type Element = React.Element
  type ElementClass = React.ElementClass
  type ElementAttributesProperty = React.ElementAttributesProperty
  type ElementChildrenAttribute = React.ElementChildrenAttribute
  type LibraryManagedAttributes<C, P> = React.LibraryManagedAttributes<C, P>
  type IntrinsicAttributes = React.IntrinsicAttributes
  type IntrinsicClassAttributes<T> = React.IntrinsicClassAttributes<T>
  type IntrinsicElements = React.IntrinsicElements
}

type Props = Record<string, unknown> & { children?: ReactNode }

/** Elements that hold nothing but text. */
const TEXT_ONLY = new Set<unknown>(['option', 'textarea', 'title', 'text', 'tspan', 'style', 'script'])
/** Attributes that are read out or shown. */
const SHOWN = ['title', 'aria-label', 'alt', 'placeholder']
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u

export function jsx(type: ElementType, props: Props, key?: Key) {
  return make(type, isDrawn(type) ? safe(type, props) : props, key)
}

export function jsxs(type: ElementType, props: Props, key?: Key) {
  return makeAll(type, isDrawn(type) ? safe(type, props) : props, key)
}

/** A component draws its texts in elements of its own. */
function isDrawn(type: unknown): boolean {
  return typeof type === 'string' || type === Fragment
}

function safe(type: ElementType, props: Props): Props {
  let changed: Props | undefined
  const set = (name: string, value: unknown) => {
    changed ??= { ...props }
    changed[name] = value
  }
  for (const name of SHOWN) {
    const text = props[name]
    if (typeof text === 'string' && deceives(text)) set(name, visible(text))
  }
  const { children } = props
  const isTextOnly = TEXT_ONLY.has(type)
  if (Array.isArray(children)) {
    const drawn = children.map((child) => draw(child, isTextOnly, false))
    if (drawn.some((child, index) => child !== children[index])) set('children', drawn)
  } else {
    const drawn = draw(children, isTextOnly, true)
    if (drawn !== children) set('children', drawn)
  }
  return changed ?? props
}

function draw(child: ReactNode, isTextOnly: boolean, isAlone: boolean): ReactNode {
  if (typeof child !== 'string') return child
  if (deceives(child)) return isTextOnly ? visible(child) : withMarks(child)
  return !isAlone && !isTextOnly && RIGHT_TO_LEFT.test(child) ? make('bdi', { children: child }) : child
}

function deceives(text: string): boolean {
  return text.search(DECEIVING) >= 0
}

/** A text with names instead of such characters, where only text may be. */
export function visible(text: string): string {
  return unified(text).replace(DECEIVING, (character) => `⟨${nameOf(character)}⟩`)
}

function withMarks(text: string): ReactNode {
  const pieces: ReactNode[] = []
  let end = 0
  const whole = unified(text)
  for (const { 0: character, index } of whole.matchAll(DECEIVING)) {
    const name = nameOf(character)
    const mark = make('span', {
      className: 'deceiving',
      title: 'a character that is not shown',
      children: name,
    })
    pieces.push(whole.slice(end, index), mark)
    end = index + character.length
  }
  return makeAll('bdi', { children: [...pieces, whole.slice(end)] })
}

/** Line ends of other systems deceive nobody. */
function unified(text: string): string {
  return text.replaceAll('\r\n', '\n')
}

function nameOf(character: string): string {
  return `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`
}
