"""HTTP and websockets; refuses to start behind a database wall that does not stand."""

import os

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")
http = get_asgi_application()

from accounts.wall import check_role  # noqa: E402 - needs the apps that are loaded above
from chatapp.routing import websocket_urlpatterns  # noqa: E402

check_role()
sockets = AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(websocket_urlpatterns)))
application = ProtocolTypeRouter({"http": http, "websocket": sockets})
