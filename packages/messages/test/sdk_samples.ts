import { fileURLToPath } from 'node:url'
import ts from 'typescript'

/** A value of a type of an SDK: with all of its fields, or with those alone that it must have. */
export interface SdkSample {
  value: Record<string, unknown>
  is_full: boolean
}

const FILE = fileURLToPath(new URL('types_of_sdks.ts', import.meta.url))
/** No message nests deeper; types that name themselves end here. */
const DEPTH_MAX = 14

/** The declarations of the SDKs, which are read and bound once. */
const DECLARATIONS = new Map<string, ts.SourceFile | undefined>()
let previous: ts.Program | undefined

/** A program of one source that is not on disk, beside this file. */
export function compiled(source: string): { program: ts.Program; file: ts.SourceFile } {
  const options: ts.CompilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    types: [],
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
  }
  const host = ts.createCompilerHost(options)
  const { getSourceFile, fileExists, readFile } = host
  host.fileExists = (name) => name === FILE || fileExists.call(host, name)
  host.readFile = (name) => (name === FILE ? source : readFile.call(host, name))
  host.getSourceFile = (name, target, ...rest) =>
    name === FILE
      ? ts.createSourceFile(name, source, target)
      : declarations(name, () => getSourceFile.call(host, name, target, ...rest))
  const program = ts.createProgram([FILE], options, host, previous)
  previous = program
  return { program, file: program.getSourceFile(FILE)! }
}

function declarations(name: string, read: () => ts.SourceFile | undefined): ts.SourceFile | undefined {
  if (!DECLARATIONS.has(name)) DECLARATIONS.set(name, read())
  return DECLARATIONS.get(name)
}

/** Values of the types, each named as `import('…').Name`, in which every member of every union in them occurs. */
export function sdkSamples(types: readonly string[]): SdkSample[] {
  const { program, file } = compiled(types.map((type, i) => `export type T${i} = ${type}`).join('\n'))
  const samples = new Samples(program.getTypeChecker())
  return file.statements.filter(ts.isTypeAliasDeclaration).flatMap((alias) => samples.of(alias))
}

class Samples {
  constructor(private readonly checker: ts.TypeChecker) {}

  of(alias: ts.TypeAliasDeclaration): SdkSample[] {
    const type = this.checker.getTypeAtLocation(alias)
    if (type.flags & ts.TypeFlags.Any) throw new Error(`${alias.getText()} is not known`)
    return membersOf(type).flatMap((member) => [
      ...this.objects(member, true, []).map((value) => ({ value, is_full: true })),
      ...this.objects(member, false, []).map((value) => ({ value, is_full: false })),
    ])
  }

  private values(type: ts.Type, is_full: boolean, name: string, above: readonly ts.Type[]): unknown[] {
    if (type.isUnion()) {
      const booleans = type.types.filter(({ flags }) => flags & ts.TypeFlags.BooleanLiteral)
      const others = type.types.filter(
        ({ flags }) => !(flags & (ts.TypeFlags.BooleanLiteral | ts.TypeFlags.Undefined | ts.TypeFlags.Null)),
      )
      const found = others.flatMap((member) => this.values(member, is_full, name, above))
      return booleans.length > 0 ? [...found, true] : found
    }
    if (type.isStringLiteral() || type.isNumberLiteral()) return [type.value]
    if (type.flags & (ts.TypeFlags.StringLike | ts.TypeFlags.TemplateLiteral)) return [textOf(name)]
    if (type.flags & ts.TypeFlags.NumberLike) return [1]
    if (type.flags & ts.TypeFlags.BooleanLike) return [true]
    if (type.flags & (ts.TypeFlags.Null | ts.TypeFlags.Undefined | ts.TypeFlags.Never)) return []
    if (this.checker.isArrayType(type) || this.checker.isTupleType(type)) {
      const [item] = this.checker.getTypeArguments(type as ts.TypeReference)
      const items = item === undefined ? [] : this.values(item, is_full, name, above)
      return items.length === 0 ? [[]] : items.map((one) => [one])
    }
    return type.flags & (ts.TypeFlags.Object | ts.TypeFlags.Intersection)
      ? this.objects(type, is_full, above)
      : [{}]
  }

  /** As many objects as the field with the most values has of them: each value of each field is in one. */
  private objects(type: ts.Type, is_full: boolean, above: readonly ts.Type[]): Record<string, unknown>[] {
    if (above.includes(type) || above.length > DEPTH_MAX) return []
    const below = [...above, type]
    const fields: [string, unknown[]][] = []
    for (const property of this.checker.getPropertiesOfType(type)) {
      const isOptional = (property.flags & ts.SymbolFlags.Optional) !== 0
      if (property.flags & ts.SymbolFlags.Method || (isOptional && !is_full)) continue
      const values = this.values(this.checker.getTypeOfSymbol(property), is_full, property.name, below)
      if (values.length > 0) fields.push([property.name, values])
      else if (!isOptional) fields.push([property.name, [null]])
    }
    const count = Math.max(1, ...fields.map(([, values]) => values.length))
    return Array.from({ length: count }, (_, i) =>
      Object.fromEntries(fields.map(([name, values]) => [name, values[i % values.length]])),
    )
  }
}

function membersOf(type: ts.Type): ts.Type[] {
  return type.isUnion() ? type.types : [type]
}

function textOf(name: string): string {
  if (/^(image_url|url|file_url|fileUri)$/.test(name)) return 'https://example.com/a.png'
  if (/^(data|file_data|result)$/.test(name)) return 'AAAA'
  if (/mime_?type|media_type/i.test(name)) return 'image/png'
  if (name === 'role') return 'user'
  return name === 'arguments' ? '{"a":1}' : 'word'
}
