#!/usr/bin/env bash
# Turns off what works on its own: an upgrade in the middle of a job takes its packages, its CPU and the lock of the package manager away,
# and a host lives for hours. New packages come with a new image.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# Masked whether or not the unit is there: a package that comes later does not bring it back.
units=(
  apt-daily.timer apt-daily.service apt-daily-upgrade.timer apt-daily-upgrade.service unattended-upgrades.service
  man-db.timer motd-news.timer dpkg-db-backup.timer update-notifier-download.timer update-notifier-motd.timer
  fwupd-refresh.timer snapd.snap-repair.timer
  dnf-makecache.timer dnf-automatic.timer dnf-automatic-install.timer update-motd.timer
)
for unit in "${units[@]}"; do
  if [[ -d /run/systemd/system ]]; then
    systemctl stop "$unit" 2>/dev/null || true # not there, or not running
  fi
  systemctl mask --quiet "$unit" 2>/dev/null || systemctl mask "$unit" # the second time with what is wrong
done

if command -v apt-get >/dev/null; then
  install -o root -g root -m 0644 files/apt.conf /etc/apt/apt.conf.d/99remuda
  if dpkg-query -W unattended-upgrades >/dev/null 2>&1; then
    apt-get -qq -o DPkg::Lock::Timeout=300 purge -y unattended-upgrades >/dev/null
  fi
fi

# Ubuntu's agents come as snaps, which upgrade themselves besides.
if [[ -S /run/snapd.socket ]] && command -v snap >/dev/null; then
  snap refresh --hold
fi
