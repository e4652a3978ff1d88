/** A text on one line that can close no comment and open no block, for Markdown that a model reads. */
export function oneLine(text: string): string {
  return text
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .replaceAll('<!--', '‹!--')
    .replaceAll('-->', '--›')
    .replaceAll('```', "'''")
    .trim()
}

/** A name as the Agent Skills format takes it: 1 to 64 lower-case letters, digits and single hyphens. */
export function skillName(name: string): string {
  const plain = name
    .slice(0, 200)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 64)
  return plain.replace(/^-|-$/g, '') || 'general'
}
