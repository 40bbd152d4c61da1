#!/usr/bin/env bash
# Installs what every host has: what the agent's units need, and what nearly every job asks for.
set -euo pipefail

if command -v apt-get >/dev/null; then
  apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=5 update
  apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=5 install -y --no-install-recommends \
    ca-certificates curl dbus git gzip iproute2 jq libpam-systemd nftables procps sudo tar tzdata unzip xz-utils zstd >/dev/null
else
  # Its curl is curl-minimal, which a request for curl would collide with.
  dnf -q -y install ca-certificates git gzip iproute jq nftables procps-ng shadow-utils sudo tar tzdata unzip util-linux xz zstd
fi
