# syntax=docker/dockerfile:1

FROM rust:1.95-slim-bookworm AS build
# The bundled SQLite and the cryptography need a C compiler, which this image has.
WORKDIR /build
COPY . .
# The commit for `einvoice --version` and the metric `build_info`, since `.git` is not copied:
# docker build --build-arg EINVOICE_COMMIT="$(git rev-parse HEAD)" .
ARG EINVOICE_COMMIT=
# The caches outlive a change of the sources, so that only the changed crates are compiled again;
# they are not part of the image, so the binary is copied out of them.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/build/target \
    cargo build --release --locked --bin einvoice \
    && cp target/release/einvoice /usr/local/bin/einvoice

FROM debian:bookworm-slim
# Certificates for the authority and for webhooks; curl for the health check.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates curl \
    && rm -rf /var/lib/apt/lists/*
# Fixed ids of user and group, so that a volume keeps its owner from one image to the next.
RUN groupadd --gid 10001 einvoice \
    && useradd --uid 10001 --gid 10001 --no-create-home --shell /usr/sbin/nologin einvoice \
    && install -d -o einvoice -g einvoice -m 0750 /var/lib/einvoice
COPY --from=build /usr/local/bin/einvoice /usr/local/bin/einvoice

# Without its settings a production process exits at once and names what is missing. For a trial set
# `-e EINVOICE__ENVIRONMENT=development -e EINVOICE__ALLOW_OPEN_DEVELOPMENT=true`.
ENV EINVOICE__ENVIRONMENT=production \
    EINVOICE__HTTP__BIND=0.0.0.0:8080 \
    EINVOICE__DATA_DIR=/var/lib/einvoice
# A config.toml mounted here is read at start; without one the defaults and the environment apply.
WORKDIR /etc/einvoice
USER 10001:10001
VOLUME /var/lib/einvoice
EXPOSE 8080
# SIGTERM drains: what was accepted is finished before the process ends.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
    CMD ["curl", "--fail", "--silent", "--show-error", "--output", "/dev/null", "http://127.0.0.1:8080/health/ready"]
ENTRYPOINT ["einvoice"]
CMD ["serve"]
