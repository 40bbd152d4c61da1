#!/usr/bin/env bash
# Installs docker from the distribution. The daemon starts with its first use: a host whose jobs need no container never runs it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

install -d -o root -g root -m 0755 /etc/docker
install -o root -g root -m 0644 files/daemon.json /etc/docker/daemon.json

if command -v apt-get >/dev/null; then
  packages=(docker.io iptables apparmor)
  # Ubuntu packs buildx and compose; Debian 12 does not.
  for package in docker-buildx docker-compose-v2; do
    if apt-cache show "$package" >/dev/null 2>&1; then
      packages+=("$package")
    fi
  done
  # Not started by its installation, which would leave the daemon's state of this machine in the image.
  trap 'rm -f /usr/sbin/policy-rc.d' EXIT
  printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
  chmod 0755 /usr/sbin/policy-rc.d
  apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=5 install -y --no-install-recommends "${packages[@]}" >/dev/null
else
  dnf -q -y install docker
fi

systemctl --quiet disable docker.service containerd.service
systemctl --quiet enable docker.socket
