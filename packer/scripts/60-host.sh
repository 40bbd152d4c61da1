#!/usr/bin/env bash
# What a host allows its jobs, and how much they leave on it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

install -d -o root -g root -m 0755 /etc/sudoers.d /etc/sysctl.d
install -o root -g root -m 0440 files/sudoers /etc/sudoers.d/60-remuda
visudo -cq
install -o root -g root -m 0644 files/sysctl.conf /etc/sysctl.d/99-remuda.conf

# Ubuntu's keeper of core dumps would take the kernel's pattern back at each boot.
systemctl mask --quiet apport.service apport-autoreport.path apport-autoreport.timer 2>/dev/null ||
  systemctl mask apport.service apport-autoreport.path apport-autoreport.timer

# No swap: a job that eats the memory is killed by the kernel within its own unit instead of slowing the whole host to a crawl.
if [[ -f /etc/fstab ]]; then
  sed -i -E '/^[^#[:space:]]+[[:space:]]+[^[:space:]]+[[:space:]]+swap[[:space:]]/d' /etc/fstab
fi
