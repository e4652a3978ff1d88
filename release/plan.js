/** What a release runs that the world sees, in order. Each step can be run again: what is there already is left. */

/**
 * The packages that a registry gets, each after those that it depends on.
 * @param {Array<{ name: string, private?: boolean, dependencies?: Record<string, string> }>} manifests
 */
export function publishOrder(manifests) {
  const waiting = new Map(manifests.filter((one) => !one.private).map((one) => [one.name, one]))
  const order = []
  while (waiting.size > 0) {
    const ready = [...waiting.values()]
      .filter(({ dependencies = {} }) => !Object.keys(dependencies).some((name) => waiting.has(name)))
      .map(({ name }) => name)
      .sort()
    if (ready.length === 0) throw new Error(`These depend on each other: ${[...waiting.keys()].join(', ')}.`)
    for (const name of ready) waiting.delete(name)
    order.push(...ready)
  }
  return order
}

/** The file that `npm pack` makes of a package. */
export function tarballOf(name, version) {
  return `${name.replace('@', '').replace('/', '-')}-${version}.tgz`
}

/**
 * The commands, as words; they run in release/dist.
 * @param {{ manifests: object[], version: string, image: string, wheel: string | undefined, files: string[] }} release
 */
export function publishSteps({ manifests, version, image, wheel, files }) {
  const tag = `${image}:${version}`
  return [
    ...publishOrder(manifests).map((name) => ({
      what: `${name} on npm, with provenance`,
      done: ['npm', 'view', `${name}@${version}`, 'version'],
      run: ['npm', 'publish', tarballOf(name, version), '--access', 'public', '--provenance'],
    })),
    {
      what: 'the Python client on PyPI',
      run: ['python3', '-m', 'twine', 'upload', '--skip-existing', wheel ?? '*.whl'],
    },
    {
      what: 'the image for amd64 and arm64, with provenance and a bill of materials',
      run: [
        ...['docker', 'buildx', 'build', '../..', '--platform', 'linux/amd64,linux/arm64', '--tag', tag],
        ...['--provenance=mode=max', '--sbom=true', '--metadata-file', 'image.json', '--push'],
      ],
    },
    {
      what: "the image's signature, by its digest",
      run: ['cosign', 'sign', '--yes', `${image}@{digest of image.json}`],
    },
    {
      what: 'the release with its files',
      done: ['gh', 'release', 'view', `v${version}`],
      run: ['gh', 'release', 'create', `v${version}`, '--verify-tag', '--title', version, ...files],
    },
  ]
}
