#!/usr/bin/env bash
# Takes away what belongs to this one machine or to its making: keys, identities, logs, histories, caches. The last step of all: the next
# connection to the build instance finds no key that would let it in.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
shopt -s nullglob dotglob

if command -v apt-get >/dev/null; then
  apt-get -qq clean
  rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/debconf/*-old /var/lib/dpkg/*-old
else
  dnf -q clean all
  rm -rf /var/cache/dnf
fi

# cloud-init runs as on a new instance, which writes the keys of the hosts and their users again.
if command -v cloud-init >/dev/null; then
  cloud-init clean --logs
fi
rm -rf /var/lib/cloud/instances /var/lib/cloud/instance /var/lib/cloud/data

# Keys of this machine, and of its logins.
rm -f /etc/ssh/ssh_host_*_key /etc/ssh/ssh_host_*_key.pub
rm -f /root/.ssh/* /home/*/.ssh/*

# An empty machine-id is written at each first boot; a missing one is only sometimes.
: >/etc/machine-id
if [[ -e /var/lib/dbus/machine-id && ! -L /var/lib/dbus/machine-id ]]; then
  rm -f /var/lib/dbus/machine-id
fi
rm -f /var/lib/systemd/random-seed /var/lib/systemd/credential.secret
rm -rf /var/lib/dhcp/*.leases /var/lib/NetworkManager/*.lease
rm -rf /etc/remuda/host.json /etc/remuda/pre-runner /etc/remuda/post-release /var/lib/remuda /run/remuda
if [[ ! -d /run/systemd/system ]] || ! systemctl --quiet is-active docker.service; then
  rm -rf /var/lib/docker /var/lib/containerd
fi

# What the CloudWatch agent has said and read. /var/log/amazon, below, is a link to its logs.
rm -rf /opt/aws/amazon-cloudwatch-agent/logs/* /opt/aws/amazon-cloudwatch-agent/var/*

# Log files stay, empty, with their owners: some programs do not create them again. Rotated ones are deleted.
rm -rf /var/log/journal/* /var/log/amazon /var/log/unattended-upgrades
find /var/log -xdev -type f \( -name '*.gz' -o -name '*.xz' -o -name '*.old' -o -name '*.[0-9]' \) -delete
find /var/log -xdev -type f -exec truncate -s 0 {} +
rm -rf /var/crash/* /var/lib/systemd/coredump/*

for home in /root /home/*; do
  rm -rf "$home"/.*_history "$home"/.lesshst "$home"/.wget-hsts "$home"/.viminfo "$home"/.cache "$home"/.gnupg \
    "$home"/.aws "$home"/.docker "$home"/.sudo_as_admin_successful
done

# These scripts may be in /tmp, and Packer or the tests delete them. Running services have directories of their own there until they end.
for path in /tmp/* /var/tmp/*; do
  case $path in
    */systemd-private-* | */snap-private-tmp) ;;
    *) [[ $here/ == "$path"/* ]] || rm -rf "$path" ;;
  esac
done
