"""The addresses of this part."""

from django.urls import URLPattern, path

from accounts import account_views, operator_views, password_views, tenant_views, views

_tenant = "t/<slug:tenant>/settings/"

urlpatterns: list[URLPattern] = [
    path("", views.home, name="home"),
    path("login/", views.log_in, name="login"),
    path("logout/", views.log_out, name="logout"),
    path("signup/", views.sign_up, name="signup"),
    path("theme/", views.theme, name="theme"),
    path("first/<str:token>/", views.first_operator, name="first"),
    path("password/reset/", password_views.password_reset, name="password_reset"),
    path("password/reset/sent/", password_views.password_reset_done, name="password_reset_done"),
    path(
        "password/reset/done/",
        password_views.password_reset_complete,
        name="password_reset_complete",
    ),
    path(
        "password/reset/<uidb64>/<token>/",
        password_views.PasswordResetConfirm.as_view(),
        name="password_reset_confirm",
    ),
    path("password/change/", password_views.password_change, name="password_change"),
    path("account/", account_views.account, name="account"),
    path("account/email/", account_views.email_change, name="email_change"),
    path("account/email/<str:token>/", account_views.email_confirm, name="email_confirm"),
    path("account/delete/", account_views.account_delete, name="account_delete"),
    path("operator/people/", operator_views.people, name="operator_people"),
    path("operator/people/<int:user_id>/disable/", operator_views.disable, name="person_disable"),
    path("operator/people/<int:user_id>/enable/", operator_views.enable, name="person_enable"),
    path("organisations/new/", tenant_views.tenant_new, name="tenant_new"),
    path("invite/<str:token>/", tenant_views.invite, name="invite"),
    path(_tenant, tenant_views.tenant_settings, name="tenant_settings"),
    path(f"{_tenant}leave/", tenant_views.tenant_leave, name="tenant_leave"),
    path(f"{_tenant}delete/", tenant_views.tenant_delete, name="tenant_delete"),
    path(f"{_tenant}members/<int:user_id>/role/", tenant_views.member_role, name="member_role"),
    path(
        f"{_tenant}members/<int:user_id>/remove/", tenant_views.member_remove, name="member_remove"
    ),
    path(f"{_tenant}invitations/", tenant_views.invitation_create, name="invitation_create"),
    path(
        f"{_tenant}invitations/<int:invitation_id>/revoke/",
        tenant_views.invitation_revoke,
        name="invitation_revoke",
    ),
]
