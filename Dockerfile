# One worker, or any other command of `longhaul`.
FROM python:3.11-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends git bubblewrap \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home longhaul \
    # Whose the project is, decides who the worker runs as (compose: LONGHAUL_UID): whoever it is, writes here.
    && install -d -m 1777 /data /memory \
    && install -d /srv/longhaul/agents
WORKDIR /app
COPY requirements.lock ./
RUN pip install --no-cache-dir --require-hashes -r requirements.lock
COPY pyproject.toml LICENSE worker.py ./
COPY longhaul longhaul
COPY workflows workflows
COPY activities activities
COPY starter starter
RUN pip install --no-cache-dir --no-build-isolation --no-deps -e . \
    && python -m compileall -q longhaul workflows activities starter
# Below it lie agents/ with the files and tools of whoever runs this: mounted there, or copied by an image FROM this one.
WORKDIR /srv/longhaul
USER longhaul
ENV LONGHAUL_DATA_DIR=/data HOME=/home/longhaul PYTHONPATH=/srv/longhaul/agents PYTHONUNBUFFERED=1
VOLUME /data
# Exec form: SIGTERM has to reach the worker itself, which then hands its work over.
CMD ["python", "-P", "-m", "longhaul.worker"]
