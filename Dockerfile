# The application's image: web, workers, beat and migrations. Servers come from their own images.
FROM python:3.13-slim

ENV PYTHONUNBUFFERED=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    RECOLLECT_STATE=/state \
    STATIC_FOLDER=/app/collected \
    BIND=0.0.0.0 \
    PORT=8765

WORKDIR /app
COPY script/local/uv.txt requirements.txt ./
RUN pip install --no-cache-dir --require-hashes -r uv.txt \
    && uv pip install --system --no-cache --compile-bytecode --require-hashes -r requirements.txt

# A named volume takes over owner and mode of what it is laid upon.
RUN useradd --uid 10001 --user-group --create-home recollect \
    && install -d -o recollect -g recollect -m 0700 /state /state/beat

COPY . .
# The settings want to know where the servers are, and there are none yet.
RUN python -m compileall -q accounts memory chatapp \
    && SECRET_KEY=none FIELD_KEYS= DATABASE_URL=postgres://none@none/none REDIS_URL=redis://none/0 \
    python manage.py collectstatic --no-input --verbosity 0
USER recollect
VOLUME /state
EXPOSE 8765
CMD ["python", "-m", "chatapp.serve"]
