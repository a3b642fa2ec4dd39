# Flyball's daemon and CLI. Two stages: the first compiles, the second holds only what runs.

FROM node:22-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY scripts ./scripts
COPY lua ./lua
COPY src ./src
RUN npm run build && npm prune --omit=dev --ignore-scripts

FROM node:22-bookworm-slim
LABEL org.opencontainers.image.title="flyball" \
      org.opencontainers.image.description="An autopilot for rate limits in Redis" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV NODE_ENV=production \
    FLYBALL_HTTP_HOST=0.0.0.0 \
    FLYBALL_HTTP_PORT=9464 \
    FLYBALL_POLICIES=/policies
WORKDIR /flyball
COPY --from=build /build/node_modules ./node_modules
COPY --from=build /build/dist ./dist
COPY package.json LICENSE ./
# A number, so that an orchestrator can verify that it is not root. The root file system may be read-only.
USER 65532:65532
EXPOSE 9464
# Node is in the image; curl is not. Alive means that the loop turns: it does not depend on Redis.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.FLYBALL_HTTP_PORT}/livez`).then(r => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# The daemon handles SIGTERM itself, so it may be process 1.
ENTRYPOINT ["node", "dist/cli/main.js"]
CMD ["run"]
