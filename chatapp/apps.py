"""The conversation and the web."""

from django.apps import AppConfig


class ChatappConfig(AppConfig):
    name = "chatapp"
