# hello-uring in a container.
#
#   docker build -t hello-uring .
#   docker run --rm -p 8080:8080 --security-opt seccomp=unconfined hello-uring
#
# Docker's default seccomp profile answers io_uring_setup with EPERM; with it the server warns and
# serves by epoll. Narrower than "unconfined" is that profile plus three system calls: take Docker's
# default.json (moby, profiles/seccomp) and
#
#   jq '.syscalls += [{"names": ["io_uring_setup", "io_uring_enter", "io_uring_register"],
#       "action": "SCMP_ACT_ALLOW"}]' default.json > io_uring.json
#   docker run --rm -p 8080:8080 --security-opt seccomp=io_uring.json hello-uring
#
# Never --privileged: it gives far more than io_uring needs. For benchmarks --network host leaves
# Docker's proxy and NAT out of the path, and --ulimit nofile=65536:65536 allows that many
# connections. Server options follow the image name; the environment (HELLO_URING_PORT) works too.

FROM debian:trixie-slim AS build
WORKDIR /src
# Alone, so that this layer is rebuilt only when the list of packages changes.
COPY scripts/setup scripts/setup
RUN scripts/setup && apt-get install -y --no-install-recommends git
COPY . .
RUN cmake --preset release && cmake --build --preset release \
    && strip -o /hello-uring build/release/hello-uring

FROM debian:trixie-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        libfmt10 libllhttp9.2 libspdlog1.15 libstdc++6 liburing2 \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /hello-uring /usr/local/bin/hello-uring
# Fails here, not on the first start, when a shared library is missing.
RUN ["/usr/local/bin/hello-uring", "--version"]
USER 65532:65532
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=2s \
    CMD ["/usr/local/bin/hello-uring", "--check"]
ENTRYPOINT ["/usr/local/bin/hello-uring"]
