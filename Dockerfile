# One worker, or any other command of `longhaul`.
FROM python:3.11-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends git bubblewrap \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home longhaul \
    && install -d -o longhaul -g longhaul /data
WORKDIR /app
COPY requirements.lock ./
RUN pip install --no-cache-dir --require-hashes -r requirements.lock
COPY pyproject.toml LICENSE worker.py ./
COPY longhaul longhaul
COPY workflows workflows
COPY activities activities
COPY starter starter
RUN pip install --no-cache-dir --no-build-isolation --no-deps -e . \
    && python -m compileall -q longhaul workflows activities starter worker.py
# Whose the project is, decides who the worker runs as (compose: LONGHAUL_UID).
RUN chmod 1777 /data
USER longhaul
ENV LONGHAUL_DATA_DIR=/data PYTHONUNBUFFERED=1
VOLUME /data
# Exec form: SIGTERM has to reach the worker itself, which then hands its work over.
CMD ["python", "-P", "-m", "longhaul.worker"]
