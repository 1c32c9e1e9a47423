"""The addresses of the memory page and its parts, below /t/<tenant>/memory/."""

from django.urls import path

from memory import learning_views, row_views, views

urlpatterns = [
    path("", views.memory, name="memory"),
    path("add/", views.memory_add, name="memory_add"),
    path("settings/", views.memory_settings, name="memory_settings"),
    path("retry/", views.memory_retry, name="memory_retry"),
    path("empty-trash/", views.memory_empty_trash, name="memory_empty_trash"),
    path("failures/", learning_views.memory_failures, name="memory_failures"),
    path("learning/", learning_views.memory_learning, name="memory_learning"),
    path("profile/", learning_views.memory_profile, name="memory_profile"),
    path("accept-all/", learning_views.memory_accept_all, name="memory_accept_all"),
    path("forget-everything/", views.memory_forget, name="memory_forget"),
    path("<uuid:memory_id>/", views.memory_row, name="memory_row"),
    path("<uuid:memory_id>/edit/", views.memory_edit, name="memory_edit"),
    path("<uuid:memory_id>/delete/", views.memory_delete, name="memory_delete"),
    path("<uuid:memory_id>/undo/", views.memory_undo, name="memory_undo"),
    path("<uuid:memory_id>/accept/", learning_views.memory_accept, name="memory_accept"),
    path("<uuid:memory_id>/decline/", learning_views.memory_decline, name="memory_decline"),
    path("<uuid:memory_id>/more/", row_views.memory_more, name="memory_more"),
    path("<uuid:memory_id>/pin/", row_views.memory_pin, name="memory_pin"),
    path("<uuid:memory_id>/tags/", row_views.memory_tags, name="memory_tags"),
    path("<uuid:memory_id>/until/", row_views.memory_until, name="memory_until"),
    path("<uuid:memory_id>/reach/", row_views.memory_reach, name="memory_reach"),
    path("<uuid:memory_id>/restore/", row_views.memory_restore, name="memory_restore"),
]
