-- The roles, the database and the extension. Run by psql as a superuser; may be run again at any
-- time. Passwords and the database's name come from -v or from the environment:
-- WEB_PASSWORD, MIGRATE_PASSWORD, APP_DATABASE.
--
-- recollect_owner    owns the tables; nobody logs in as it
-- recollect_app      what the application may do: its own rows, behind row level security
-- recollect_review   an admin's look at the rows of a tenant, for one transaction at a time
-- recollect_migrate  login for migrations and test set-up: may become the owner
-- recollect_web      login of the application: may become app or review, has no right of its own

\set ON_ERROR_STOP on
\if :{?web_password}
\else
  \getenv web_password WEB_PASSWORD
\endif
\if :{?migrate_password}
\else
  \getenv migrate_password MIGRATE_PASSWORD
\endif
\if :{?database}
\else
  \set database recollect
  \getenv database APP_DATABASE
\endif

-- A failing statement must not carry a password into the server's log.
set log_min_error_statement = panic;
set client_min_messages = warning;

select format('create role %I', name)
from unnest(array['recollect_owner', 'recollect_app', 'recollect_review',
                  'recollect_migrate', 'recollect_web']) as name
where not exists (select from pg_roles where rolname = name)
\gexec

alter role recollect_owner  nologin inherit   createdb   nosuperuser nocreaterole noreplication nobypassrls;
alter role recollect_app    nologin inherit   nocreatedb nosuperuser nocreaterole noreplication nobypassrls;
alter role recollect_review nologin inherit   nocreatedb nosuperuser nocreaterole noreplication nobypassrls;
alter role recollect_migrate login noinherit  nocreatedb nosuperuser nocreaterole noreplication nobypassrls
  password :'migrate_password';
alter role recollect_web     login noinherit  nocreatedb nosuperuser nocreaterole noreplication nobypassrls
  password :'web_password';

grant recollect_owner to recollect_migrate with inherit false, set true;
grant recollect_app, recollect_review to recollect_web with inherit false, set true;

select format('create database %I owner recollect_owner encoding ''UTF8''', :'database')
where not exists (select from pg_database where datname = :'database')
\gexec
select format('alter database %I owner to recollect_owner', :'database')
\gexec

-- Its control file is not trusted, so only a superuser can make it; template1 for test databases.
\connect template1
set client_min_messages = warning;
create extension if not exists vector;
alter extension vector update;
\connect :database
set client_min_messages = warning;
create extension if not exists vector;
alter extension vector update;
