#!/usr/bin/env bash
# Installs the agent from the given package, and has it start with the next boot. On the machine that builds the image it must not start:
# it would look for a record of that machine, find none, and end it.
set -euo pipefail
units=(agentd.service remuda-firewall.service)

if [[ -d /run/systemd/system ]]; then
  systemctl --quiet mask --runtime "${units[@]}"
  trap 'systemctl --quiet unmask --runtime "${units[@]}"' EXIT
fi

package=$(realpath -e "$REMUDA_AGENTD_PACKAGE")
case $package in
  *.deb)
    # The same version again is installed again, from this file.
    apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=5 install -y --no-install-recommends --reinstall --allow-downgrades \
      -o APT::Sandbox::User=root "$package" >/dev/null
    ;;
  *.rpm) dnf -q -y install "$package" || dnf -q -y reinstall "$package" ;;
  *) echo "neither a .deb nor an .rpm: $package" >&2; exit 1 ;;
esac

# The package does both where systemd runs; elsewhere it may have left them to the next boot.
systemd-sysusers /usr/lib/sysusers.d/remuda.conf
systemd-tmpfiles --create /usr/lib/tmpfiles.d/remuda.conf

if [[ -d /run/systemd/system ]]; then
  systemctl --quiet unmask --runtime "${units[@]}"
  trap - EXIT
fi
systemctl --quiet enable "${units[@]}"
