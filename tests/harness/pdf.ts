import { constants, deflateRawSync, deflateSync } from 'node:zlib'

/** Objects of a PDF, each as it stands between `obj` and `endobj`; numbered from 1, of which 1 is the catalogue. */
function pdfOf(objects: readonly string[]): Buffer {
  let text = '%PDF-1.7\n'
  const places = objects.map((object, index) => {
    const at = text.length
    text += `${index + 1} 0 obj\n${object}\nendobj\n`
    return `${String(at).padStart(10, '0')} 00000 n \n`
  })
  const end = `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${text.length}\n%%EOF\n`
  return Buffer.from(
    `${text}xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${places.join('')}${end}`,
    'latin1',
  )
}

export function pdfStream(content: string, entries = ''): string {
  return `<< /Length ${content.length} ${entries} >>\nstream\n${content}\nendstream`
}

/** A stream of so many megabytes of spaces, which takes a thousandth of that. */
export function bombStream(megabytes: number): string {
  const spaces = Buffer.alloc(1024 * 1024, ' ')
  // Pieces that end like this can be put behind each other.
  const piece = deflateRawSync(spaces, { finishFlush: constants.Z_FULL_FLUSH }).toString('latin1')
  return pdfStream(`\x78\x9c${piece.repeat(megabytes)}\x03\x00`, '/Filter /FlateDecode')
}

/** Streams of a few MB that unpack to gigabytes, by the filters that each goes through. */
export function bombStreams(): Record<string, string> {
  // 128 spaces for two bytes.
  const runs = (bytes: number) =>
    Buffer.concat([Buffer.alloc(bytes, Buffer.from([129, 0x20])), Buffer.from([128])])
  const deflated = (bytes: Buffer) => deflateSync(bytes).toString('latin1')
  const hex = (bytes: Buffer) => `${bytes.toString('hex')}>`
  return {
    'run-length.pdf': pdfStream(runs(9 * 1024 * 1024).toString('latin1'), '/Filter /RunLengthDecode'),
    'deflated-runs.pdf': pdfStream(
      deflated(runs(12 * 1024 * 1024)),
      '/Filter [/FlateDecode /RunLengthDecode]',
    ),
    'hexadecimal.pdf': pdfStream(hex(runs(6 * 1024 * 1024)), '/Filter [/ASCIIHexDecode /RunLengthDecode]'),
    'deflated-ascii85.pdf': pdfStream(
      deflated(Buffer.alloc(128 * 1024 * 1024, 'z')),
      '/Filter [/FlateDecode /ASCII85Decode]',
    ),
  }
}

/** A PDF whose pages are red, with a word on each. `more`: entries of the catalogue; `objects`: numbered from 5 on. */
export function redPdf(
  pages: number,
  { more = '', objects = [] as string[], page = '', font = '', content = '' } = {},
): Buffer {
  const first = 5 + objects.length
  const numbers = Array.from({ length: pages }, (_, index) => first + index)
  return pdfOf([
    `<< /Type /Catalog /Pages 2 0 R ${more} >>`,
    `<< /Type /Pages /Count ${pages} /Kids [${numbers.map((number) => `${number} 0 R`).join(' ')}] >>`,
    content || pdfStream('1 0 0 rg 0 0 200 100 re f 0 g BT /F1 24 Tf 20 40 Td (Receipt) Tj ET'),
    font || '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
    ...objects,
    ...numbers.map(
      () =>
        `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 100] /Contents 3 0 R /Resources << /Font << /F1 4 0 R >> >> ${page} >>`,
    ),
  ])
}
