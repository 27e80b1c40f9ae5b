# The server alone. It is told by its environment which PostgreSQL to play on (DATABASE_URL) and under which keys to
# seal undealt cards (CASINO_BRAG_SEAL_KEYS); the image holds neither. The schema is put in place beforehand, by
# the same image: docker run --rm --env DATABASE_URL=... IMAGE casino-brag migrate up
# Debian's own Python is not built with all optimisations; these images' is.

FROM python:3.13-slim-bookworm AS build
WORKDIR /src
COPY requirements/build.lock requirements/run.lock requirements/
RUN python -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir --require-hashes -r requirements/build.lock \
    && python -m venv /opt/casino-brag \
    && /opt/casino-brag/bin/pip install --no-cache-dir --require-hashes -r requirements/run.lock
COPY . .
RUN /opt/build/bin/hatchling build -t wheel \
    && /opt/casino-brag/bin/pip install --no-cache-dir --no-index --no-deps dist/*.whl

FROM python:3.13-slim-bookworm
RUN groupadd --gid 10001 casino \
    && useradd --uid 10001 --gid casino --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin casino
COPY --from=build /opt/casino-brag /opt/casino-brag
ENV PATH=/opt/casino-brag/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    CASINO_BRAG_BIND=0.0.0.0:8080
USER 10001:10001
EXPOSE 8080
STOPSIGNAL SIGTERM
# Asked past any proxy: the address is this container's own. An answer other than 2xx raises, and so fails.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
    CMD ["python", "-c", "from urllib.request import ProxyHandler, build_opener; build_opener(ProxyHandler({})).open('http://127.0.0.1:8080/healthz', timeout=2)"]
CMD ["gunicorn", "--config", "python:casino_brag.web.gunicorn_conf", "casino_brag.web.app:create_app()"]
