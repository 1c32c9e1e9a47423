"""Every address of the product."""

from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("accounts.urls")),
    path("t/<slug:tenant>/memory/", include("memory.urls")),
]
