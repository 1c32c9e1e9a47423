"""The addresses of the memory page and its parts, below /t/<tenant>/memory/."""

from django.urls import path

from memory import views

urlpatterns = [
    path("", views.memory, name="memory"),
    path("add/", views.memory_add, name="memory_add"),
    path("settings/", views.memory_settings, name="memory_settings"),
    path("retry/", views.memory_retry, name="memory_retry"),
    path("forget-everything/", views.memory_forget, name="memory_forget"),
    path("<uuid:memory_id>/", views.memory_row, name="memory_row"),
    path("<uuid:memory_id>/edit/", views.memory_edit, name="memory_edit"),
    path("<uuid:memory_id>/delete/", views.memory_delete, name="memory_delete"),
    path("<uuid:memory_id>/undo/", views.memory_undo, name="memory_undo"),
    path("<uuid:memory_id>/accept/", views.memory_accept, name="memory_accept"),
]
