#!/bin/sh
# Makes Temporal's two databases, or brings them to the form that this version of its server wants. Again, it does nothing.
set -eu
for database in temporal:temporal temporal_visibility:visibility; do
    versions="/etc/temporal/schema/postgresql/v12/${database#*:}/versioned"
    temporal-sql-tool --database "${database%:*}" create-database
    temporal-sql-tool --database "${database%:*}" setup-schema --version 0.0
    temporal-sql-tool --database "${database%:*}" update-schema --schema-dir "$versions"
done
