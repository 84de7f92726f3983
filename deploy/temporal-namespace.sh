#!/bin/sh
# Makes the namespace, and waits until the server knows it: a worker that asks before ends at once.
set -eu
# A session lives for days and its blobs as long: closed ones are kept for thirty.
temporal operator namespace describe --namespace default ||
    temporal operator namespace create --namespace default --retention 720h
until temporal workflow list --namespace default --limit 1; do
    sleep 1
done
