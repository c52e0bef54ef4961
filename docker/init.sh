#!/bin/sh
# Runs once, when the database is new: a role that is bound by row-level security, its database, and pgvector.
set -eu
psql --username postgres --set ON_ERROR_STOP=1 --set password="$NOTEWELL_DB_PASSWORD" <<'SQL'
CREATE ROLE notewell LOGIN NOSUPERUSER NOBYPASSRLS PASSWORD :'password';
CREATE DATABASE notewell OWNER notewell;
\connect notewell
CREATE EXTENSION vector;
SQL
