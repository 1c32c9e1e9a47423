"""Every address of the product."""

from django.urls import URLPattern, URLResolver, include, path

from chatapp import act_views, people, views
from chatapp.health import healthz
from chatapp.operator import (
    operator,
    operator_discover,
    operator_embedding,
    operator_test,
)
from chatapp.tenant_memory import tenant_embedding, tenant_memory

handler400 = "chatapp.errors.bad_request"
handler403 = "chatapp.errors.forbidden"
handler404 = "chatapp.errors.not_found"
handler500 = "chatapp.errors.server_error"

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("accounts.urls")),
    path("operator/", operator, name="operator"),
    path("operator/discover/", operator_discover, name="operator_discover"),
    path("operator/test/", operator_test, name="operator_test"),
    path("operator/embedding/", operator_embedding, name="operator_embedding"),
    path("healthz", healthz, name="healthz"),
    path("t/<slug:tenant>/", views.new_session, name="new_session"),
    path("t/<slug:tenant>/sessions/", views.sessions, name="sessions"),
    path("t/<slug:tenant>/sessions/<uuid:session_id>/", views.session, name="session"),
    path(
        "t/<slug:tenant>/sessions/<uuid:session_id>/messages/",
        views.session_messages,
        name="session_messages",
    ),
    path(
        "t/<slug:tenant>/sessions/<uuid:session_id>/rename/",
        views.session_rename,
        name="session_rename",
    ),
    path(
        "t/<slug:tenant>/sessions/<uuid:session_id>/remember/",
        views.session_remember,
        name="session_remember",
    ),
    path(
        "t/<slug:tenant>/sessions/<uuid:session_id>/delete/",
        views.session_delete,
        name="session_delete",
    ),
    path(
        "t/<slug:tenant>/replies/<uuid:reply_id>/memories/",
        views.reply_sources,
        name="reply_sources",
    ),
    path(
        "t/<slug:tenant>/replies/<uuid:reply_id>/learnt/",
        views.reply_learnt,
        name="reply_learnt",
    ),
    path(
        "t/<slug:tenant>/replies/<uuid:reply_id>/acts/<int:number>/",
        act_views.reply_act,
        name="reply_act",
    ),
    path("t/<slug:tenant>/memory-count/", views.memory_count, name="memory_count"),
    path("t/<slug:tenant>/memory/", include("memory.urls")),
    path("t/<slug:tenant>/admin/", people.people, name="people"),
    path("t/<slug:tenant>/admin/people/<int:user_id>/purge/", people.purge_person, name="purge"),
    path("t/<slug:tenant>/admin/audit/", people.audit, name="audit"),
    path("t/<slug:tenant>/admin/memory/", tenant_memory, name="tenant_memory"),
    path(
        "t/<slug:tenant>/admin/memory/embedding/",
        tenant_embedding,
        name="tenant_embedding",
    ),
]
