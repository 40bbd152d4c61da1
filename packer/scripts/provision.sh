#!/usr/bin/env bash
# Makes a Remuda host out of a base system, as root: Packer runs it on the build instance, and the tests run it inside a root file system,
# where no systemd needs to be up. Its steps lie beside it and run by number. Any number of runs have the same outcome.
#
#   REMUDA_AGENTD_PACKAGE   the remuda-agentd package, a .deb or .rpm file
#   REMUDA_RUNNER_VERSION   actions/runner, such as 2.338.0
#   REMUDA_RUNNER_SHA256    of actions-runner-linux-<x64|arm64>-<version>.tar.gz
#   REMUDA_RUNNER_URL       where that file is fetched from, without its name
#
# Hosts send their logs to CloudWatch with
#
#   REMUDA_HOST_LOGS                  a log group, such as /remuda/remuda/hosts
#   REMUDA_CLOUDWATCH_AGENT_VERSION   of amazon-cloudwatch-agent, such as 1.300071.0b1720
#   REMUDA_CLOUDWATCH_AGENT_URL       where it is fetched from; empty for AWS's bucket
#   REMUDA_CLOUDWATCH_AGENT_KEY       the fingerprint of the key that has signed it; empty for AWS's
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

say() { printf 'provision: %s\n' "$*"; }
fail() { say "$*" >&2; exit 1; }

[[ $(id -u) == 0 ]] || fail "root is needed: run it with sudo"
: "${REMUDA_AGENTD_PACKAGE:?the path of the remuda-agentd package}"
: "${REMUDA_RUNNER_VERSION:?the version of actions/runner}"
: "${REMUDA_RUNNER_SHA256:?the SHA-256 of its archive}"
: "${REMUDA_RUNNER_URL:?where its archive is fetched from}"

# The mode of a file must not depend on the umask of the build.
umask 022
export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1
# Of this run alone: a step's commands must not be in the image's histories.
unset HISTFILE

# cloud-init of the build instance writes package sources, and holds the package manager for a while. Its errors do not matter here.
if [[ -d /run/systemd/system ]] && command -v cloud-init >/dev/null; then
  say "waiting for cloud-init"
  timeout 600 cloud-init status --wait >/dev/null || say "cloud-init reports trouble, or has not ended: $(cloud-init status || true)"
fi

for step in "$here"/[0-9][0-9]-*.sh; do
  begin=$SECONDS
  say "${step##*/}"
  bash "$step"
  say "${step##*/}: done in $((SECONDS - begin))s"
done
bash "$here/check.sh"
say "done in ${SECONDS}s"
