# rejoin: driver, sidecar and tools in one image. Nothing is fetched when a container starts: Python
# packages and jars are locked by hash, the kernel is compiled here.
FROM python:3.11.14-slim-bookworm AS build
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
WORKDIR /opt/rejoin

# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends maven openjdk-17-jdk-headless \
 && rm -rf /var/lib/apt/lists/*

COPY requirements-build.txt requirements.txt ./
RUN python -m venv .venv \
 && .venv/bin/pip install --no-cache-dir --require-hashes -r requirements-build.txt \
 && .venv/bin/pip install --no-cache-dir --require-hashes --no-build-isolation -r requirements.txt

COPY pom.xml jars.sha256 ./
RUN mvn --quiet --batch-mode --strict-checksums generate-resources \
 && sed 's#  #  build/jars/#' jars.sha256 | sha256sum --check --strict --quiet \
 && rm -r build/jars/broker

COPY LICENSE NOTICE README.md pyproject.toml ./
COPY rejoin rejoin
COPY spark_jobs spark_jobs
COPY service service
COPY bench bench
COPY examples examples
COPY schemas schemas
RUN .venv/bin/pip install --no-cache-dir --no-build-isolation --no-deps --editable . \
 && .venv/bin/python -m spark_jobs.kernel.build \
 && .venv/bin/python -m compileall -q rejoin spark_jobs service bench

FROM python:3.11.14-slim-bookworm
LABEL org.opencontainers.image.title="rejoin" \
      org.opencontainers.image.description="The streaming joins of Flink SQL on Spark, Kafka to Kafka" \
      org.opencontainers.image.licenses="Apache-2.0"

# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends openjdk-17-jre-headless tini \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 185 rejoin \
 && useradd --uid 185 --gid 185 --no-create-home --home-dir /var/lib/rejoin rejoin \
 && install --directory --owner 185 --group 185 /var/lib/rejoin

COPY --from=build /opt/rejoin /opt/rejoin
ENV PATH=/opt/rejoin/.venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    REJOIN_WORK_DIR=/var/lib/rejoin \
    SPARK_LOCAL_DIRS=/tmp \
    HOME=/tmp

USER 185:185
WORKDIR /var/lib/rejoin
VOLUME ["/var/lib/rejoin"]
EXPOSE 9640
HEALTHCHECK --interval=30s --timeout=10s --start-period=600s --retries=4 \
  CMD ["python", "-m", "service.probe", "--status-dir", "/var/lib/rejoin/status"]
ENTRYPOINT ["tini", "--", "rejoin"]
CMD ["--help"]
