"""Every setting of the product, from the environment; loud on nonsense."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.utils.csp import CSP

from chatapp import pool
from chatapp.environment import ROOT, Environment, database, mailer, memory_provider, state_folder

env = Environment.read()

BASE_DIR: Path = ROOT
STATE_FOLDER: Path = state_folder()

DEBUG = env.flag("DEBUG")
SECRET_KEY = env.required("SECRET_KEY")
SECRET_KEY_FALLBACKS = env.listed("SECRET_KEY_FALLBACKS")
FIELD_KEYS = env.fernet_keys("FIELD_KEYS")
BIND = env.text("BIND", "127.0.0.1")
PORT = env.whole("PORT", 8765, least=1, most=65535)
ALLOWED_HOSTS = env.listed("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env.listed("CSRF_TRUSTED_ORIGINS")
CSRF_FAILURE_VIEW = "chatapp.errors.csrf_failure"
HTTPS = env.flag("HTTPS")
# How many proxies of ours add to X-Forwarded-For; logins are throttled by the address it tells.
TRUSTED_PROXIES = env.whole("TRUSTED_PROXIES", 1 if HTTPS else 0, most=10)
WEB_SERVER = env.choice("WEB_SERVER", ("daphne", "uvicorn"))

INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.postgres",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "django_htmx",
    "accounts",
    "memory",
    "chatapp",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "chatapp.assets.StaticFiles",
    "chatapp.middleware.HeadAsGet",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "chatapp.middleware.ReadableCookies",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "chatapp.middleware.PrivatePages",
    "chatapp.middleware.AppErrors",
    "chatapp.middleware.PersonsZone",
]

ROOT_URLCONF = "chatapp.urls"
ASGI_APPLICATION = "chatapp.asgi.application"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": False,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.csp",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "chatapp.context.shell",
            ],
            "builtins": ["django_htmx.templatetags.django_htmx"],
        },
    }
]

# The application's role owns nothing (docs/security.md). The start-up option, not Django's
# assume_role, which waits for itself inside psycopg's pool (Django 6.1.3).
APP_ROLE = env.text("APP_ROLE", "recollect_app")
OWNER_ROLE = env.text("OWNER_ROLE", "recollect_owner")
REVIEW_ROLE = env.text("REVIEW_ROLE", "recollect_review")
AS_OWNER = os.environ.get("RECOLLECT_AS") == "owner"
if AS_OWNER:
    DATABASES: dict[str, Any] = {
        "default": database(env.required("DATABASE_OWNER_URL"), "DATABASE_OWNER_URL")
    }
    DATABASES["default"]["OPTIONS"] |= {"options": f"-c role={OWNER_ROLE}"}
else:
    DATABASES = {"default": database(env.required("DATABASE_URL"), "DATABASE_URL")}
    DATABASES["default"]["OPTIONS"] |= {
        # No statement here gains by workers beside it (measured: a search in 100,000 memories took
        # longer with them), and many people ask at once.
        "options": f"-c role={APP_ROLE} -c statement_timeout=30s -c lock_timeout=10s -c jit=off"
        " -c max_parallel_workers_per_gather=0",
        "pool": {
            "min_size": 1,
            "max_size": env.whole("DATABASE_POOL", 8, least=1, most=100),
            "timeout": 10,
            "check": pool.check,
        },
    }
DATABASES["default"]["CONN_MAX_AGE"] = 0
# User.email is unique by a constraint on its lower case, which the check does not see.
SILENCED_SYSTEM_CHECKS = ["auth.W004"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = env.required("REDIS_URL")
CHANNEL_LAYERS = {
    "default": {
        # The core layer closes every idle socket after 5 s with redis-py 8 (channels_redis#422).
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {
            "hosts": [{"address": REDIS_URL}],
            # Publishing knows no database numbers: two installations on one server must not hear
            # each other.
            "prefix": f"recollect.{urlsplit(REDIS_URL).path.strip('/') or '0'}",
        },
    }
}

CELERY_BROKER_URL = REDIS_URL
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_DEFAULT_QUEUE = "interactive"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {
    # soft limit < hard limit < lease (memory/jobs.py) < visibility timeout
    "visibility_timeout": 900,
    "socket_timeout": 5,
    "socket_connect_timeout": 2,
    "retry_on_timeout": True,
}
# A hint that is lost is sent again by the sweep; a reply does not wait for the broker.
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TASK_SOFT_TIME_LIMIT = 100
CELERY_TASK_TIME_LIMIT = 110
CELERY_BEAT_SCHEDULE = {
    "sweep": {"task": "memory.tasks.sweep", "schedule": 5.0, "options": {"expires": 5.0}},
    "tidy": {
        "task": "accounts.tasks.tidy",
        "schedule": 3600.0,
        "options": {"queue": "background", "expires": 3600.0},
    },
}

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["accounts.backends.EmailBackend"]
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"
PASSWORD_RESET_TIMEOUT = 60 * 60 * 4

SESSION_COOKIE_NAME = "recollect_login"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
if HTTPS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_HSTS_SECONDS = 60 * 60 * 24 * 365
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SECURE_CSP = {
    "default-src": [CSP.NONE],
    "script-src": [CSP.SELF, CSP.NONCE],
    "style-src": [CSP.SELF],
    "img-src": [CSP.SELF, "data:"],
    "font-src": [CSP.SELF],
    "connect-src": [CSP.SELF],
    "manifest-src": [CSP.SELF],
    "form-action": [CSP.SELF],
    "frame-ancestors": [CSP.NONE],
    "base-uri": [CSP.NONE],
}
# Frames carry at most 64 KiB of message text; JSON escapes make it longer.
DATA_UPLOAD_MAX_MEMORY_SIZE = 512 * 1024

MAILERS = {"default": mailer(env.text("EMAIL_URL", "console:"))}
DEFAULT_FROM_EMAIL = env.text("EMAIL_FROM", "Recollect <recollect@localhost>")

LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = Path(env.text("STATIC_FOLDER") or STATE_FOLDER / "static")
STORAGES = {"staticfiles": {"BACKEND": "chatapp.assets.Collected"}}
# Served from where they lie while somebody works on them, and where nothing was collected.
WHITENOISE_USE_FINDERS = DEBUG or not (STATIC_ROOT / "staticfiles.json").is_file()
WHITENOISE_AUTOREFRESH = DEBUG
WHITENOISE_MIMETYPES = {".webmanifest": "application/manifest+json"}

OPENAI_API_KEY = env.text("OPENAI_API_KEY")
OPENAI_BASE_URL = env.text("OPENAI_BASE_URL")
CHAT_MODEL = env.text("CHAT_MODEL")
EMBEDDINGS = env.choice("EMBEDDINGS", ("local", "openai"))
EMBEDDINGS_MODEL = env.text("EMBEDDINGS_MODEL")
EMBEDDINGS_BASE_URL = env.text("EMBEDDINGS_BASE_URL")
EMBEDDINGS_API_KEY = env.text("EMBEDDINGS_API_KEY")

MEMORY_PROVIDER = memory_provider(env.text("MEMORY_PROVIDER", "pgvector:"))
# memory knows nothing of chats: it is told where the words of an exchange are read.
MEMORY_EXCHANGES = "chatapp.exchanges.read_exchange"
MEMORY_SESSIONS = "chatapp.exchanges.read_sessions"
MEMORY_LISTENER = "chatapp.bells.learnt"
# What "everything about me" erases beside the memories, in the same transaction.
ERASERS = ["chatapp.erase.erase_sessions"]
ERASURE_PREVIEWS = ["chatapp.erase.preview_sessions"]
# What erases a person of one tenant when the account ends; tables are also found by themselves.
ACCOUNT_ERASERS = ["memory.purge.erase_person"]
# What the page before the end of an account counts (accounts/erase.py).
COUNTED = {
    "chatapp.ChatSession": "sessions",
    "chatapp.Message": "messages",
    "memory.Memory": "memories",
}

WINDOW_MESSAGES = env.whole("WINDOW_MESSAGES", 40, least=2, most=1000)
WINDOW_TOKENS = env.whole("WINDOW_TOKENS", 16_000, least=500)
FIRST_TOKEN_TIMEOUT = env.whole("FIRST_TOKEN_TIMEOUT", 60, least=1)
SILENCE_TIMEOUT = env.whole("SILENCE_TIMEOUT", 30, least=1)
REPLY_TIMEOUT = env.whole("REPLY_TIMEOUT", 600, least=10)

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": env.text("LOG_LEVEL", "INFO")},
    "loggers": {
        # httpx and openai log addresses and bodies at these levels; never the text of messages.
        "httpx": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
        "openai": {"level": "WARNING"},
        "daphne": {"level": "WARNING"},
        # Two lines for each task, half a millisecond of CPU; jobs write down their own failures.
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
        # A traceback every second while Redis is away; chatapp.hub says so once.
        "channels_redis": {"level": "CRITICAL"},
        # Its warnings carry addresses, and addresses carry the tokens of one-time links.
        "django.request": {"level": "ERROR"},
        "django.channels.server": {"level": "WARNING"},
    },
}
