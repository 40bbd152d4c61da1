#!/usr/bin/env bash
# Checks an image independently of the scripts that made it, and reports everything that is wrong. Exits with 1 if anything is.
#   check.sh            after the last step of provision.sh: also that nothing of this machine is left
#   check.sh --booted   on a host that has started from the image
# REMUDA_RUNNER_VERSION, REMUDA_AGENTD_VERSION (of the package) and REMUDA_HOST_LOGS (a log group), if they are given, are what must be there.
set -euo pipefail

booted=
case ${1:-} in
  --booted) booted=yes ;;
  '') ;;
  *) echo "usage: check.sh [--booted]" >&2; exit 2 ;;
esac

checked=0
wrong=()

# expect WHAT COMMAND...: the command succeeds.
expect() {
  local what=$1
  shift
  checked=$((checked + 1))
  "$@" >/dev/null 2>&1 || wrong+=("$what")
}

# same WHAT WANTED COMMAND...: the command prints just that, whatever it exits with.
same() {
  local what=$1 wanted=$2 got
  shift 2
  checked=$((checked + 1))
  got=$("$@" 2>&1) || true
  [[ $got == "$wanted" ]] || wrong+=("$what: ${got:-nothing}, not ${wanted:-nothing}")
}

mode() { same "owner and mode of $1" "$2" stat -c '%U:%G %a' "$1"; }

# none WHAT PATH... EXPRESSION: find sees nothing of the kind. A path need not be there.
none() {
  local what=$1 got
  shift
  checked=$((checked + 1))
  got=$(find "$@" -print -quit 2>/dev/null) || true
  [[ -z $got ]] || wrong+=("$what: $got")
}

# Nothing on the left of a glob that matches nothing.
shopt -s nullglob dotglob

tools() {
  local tool
  for tool in curl docker git jq nft sudo tar unzip xz zstd; do
    expect "$tool is installed" command -v "$tool"
  done
  expect 'certificates of authorities' test -s "$(certificates)"
}

certificates() {
  if [[ -e /etc/ssl/certs/ca-certificates.crt ]]; then echo /etc/ssl/certs/ca-certificates.crt; else echo /etc/pki/tls/certs/ca-bundle.crt; fi
}

users() {
  local shadow
  same 'home and shell of runner' /home/runner:/bin/bash field runner 6,7 /etc/passwd
  same 'groups of runner: its own alone' runner id -Gn runner
  shadow=$(field runner 2 /etc/shadow)
  expect "runner has no password" test "${shadow:0:1}" = '!'
  expect 'runner is not root' test "$(id -u runner)" -ge 100
  mode /home/runner 'runner:runner 750'
  expect 'group docker' getent group docker
  same 'members of docker' '' field docker 4 /etc/group
  mode /etc/sudoers.d/60-remuda 'root:root 440'
  expect 'sudoers are in order' visudo -cq
  expect 'runner is no sudoer by its name' not sudo -n -l -U runner true
}

# field NAME FIELDS FILE: of a file such as /etc/passwd.
field() { grep "^$1:" "$3" | cut -d: -f"$2"; }

not() { ! "$@"; }

agent() {
  none 'a file of the agent is not of root' /usr/bin/agentd /usr/lib/remuda ! -user root
  none 'a file of the agent can be changed by others' /usr/bin/agentd /usr/lib/remuda ! -type l -perm /022
  mode /usr/bin/agentd 'root:root 755'
  mode /etc/remuda 'root:root 755'
  mode /etc/remuda/agentd.yaml 'root:root 644'
  expect 'agentd version runs' agentd version
  if [[ -n ${REMUDA_AGENTD_VERSION:-} ]]; then
    same "version of the package remuda-agentd" "$REMUDA_AGENTD_VERSION" package_version remuda-agentd
  fi
}

# package_version is without the release of the package.
package_version() {
  if command -v dpkg-query >/dev/null; then
    dpkg-query -W -f '${Version}' "$1" | sed 's/-[^-]*$//'
  else
    rpm -q --qf '%{VERSION}' "$1"
  fi
}

# Jobs execute what is there, whatever their repository: see docs/caches.md.
below_caches() {
  local dir
  for dir in /opt/hostedtoolcache /opt/actionarchivecache; do
    none "a file in $dir is not of root" "$dir" ! -user root
    none "a file in $dir can be changed by others" "$dir" ! -type l -perm /022
  done
}

runner() {
  local library
  mode /opt/actions-runner 'root:root 750'
  expect 'config.sh of the runner' test -x /opt/actions-runner/config.sh
  expect 'Runner.Listener' test -x /opt/actions-runner/bin/Runner.Listener
  none 'a file of the runner is not of root' /opt/actions-runner ! -user root
  none 'a file of the runner can be changed by others' /opt/actions-runner ! -type l -perm /022
  none 'a registration in the distribution' /opt/actions-runner -maxdepth 1 '(' -name '.runner*' -o -name '.credentials*' ')'
  if [[ -n ${REMUDA_RUNNER_VERSION:-} ]]; then
    expect "actions/runner is not $REMUDA_RUNNER_VERSION" \
      grep -qF "\"Runner.Listener/$REMUDA_RUNNER_VERSION\"" /opt/actions-runner/bin/Runner.Listener.deps.json
  fi
  # As config.sh does, which refuses to go on without them.
  for library in /opt/actions-runner/bin/lib{coreclr,System.Security.Cryptography.Native.OpenSsl,System.IO.Compression.Native}.so; do
    if [[ -e $library ]]; then
      same "what ${library##*/} misses" '' missing "$library"
    fi
  done
  if [[ -e /opt/actions-runner/bin/libcoreclr.so ]]; then
    expect 'libicu is there' grep -q libicu <<<"$(ldconfig -p)"
  fi
}

missing() { ldd "$1" | awk '/not found/ { print $1 }'; }

units() {
  local unit
  for unit in agentd.service remuda-firewall.service docker.socket; do
    same "$unit" enabled systemctl is-enabled "$unit"
  done
  same docker.service disabled systemctl is-enabled docker.service
  for unit in apt-daily.timer apt-daily-upgrade.timer unattended-upgrades.service man-db.timer motd-news.timer dnf-makecache.timer; do
    same "$unit" masked systemctl is-enabled "$unit"
  done
  if command -v apt-config >/dev/null; then
    same 'periodic work of apt' "APT::Periodic::Enable '0'" apt_periodic
  fi
}

apt_periodic() { apt-config shell 'APT::Periodic::Enable' APT::Periodic::Enable | tr -d '\n' | sed "s/='/ '/"; }

settings() {
  expect 'docker keeps its logs small' test "$(jq -r '."log-opts"."max-size"' /etc/docker/daemon.json)" = 16m
  expect 'containers end with docker' test "$(jq '."live-restore"' /etc/docker/daemon.json)" = false
  expect 'the journal has a bound' grep -qs '^SystemMaxUse=' /etc/systemd/journald.conf /{etc,usr/lib}/systemd/journald.conf.d/*.conf
  expect 'no swap' not grep -Eqs '^[^#]+[[:space:]]swap[[:space:]]' /etc/fstab
  expect 'core dumps stay with the job' grep -qx 'kernel.core_pattern = core' /etc/sysctl.d/99-remuda.conf
  expect 'nothing keeps services from starting' test ! -e /usr/sbin/policy-rc.d
}

# Logs go to CloudWatch, or there is no trace of what sends them.
logs() {
  local home=/opt/aws/amazon-cloudwatch-agent unit=amazon-cloudwatch-agent.service
  if [[ -z ${REMUDA_HOST_LOGS:-} && ! -e $home ]]; then
    return
  fi
  same "$unit" enabled systemctl is-enabled "$unit"
  expect "$unit is in nothing's way" test -s "/etc/systemd/system/$unit.d/remuda.conf"
  none 'a file of the CloudWatch agent can be changed by others' "$home" ! -type l -perm /002
  mode "$home/etc/amazon-cloudwatch-agent.d/remuda.json" 'root:root 644'
  if [[ -n ${REMUDA_HOST_LOGS:-} ]]; then
    same 'log group' "$REMUDA_HOST_LOGS" jq -r '[.logs.logs_collected.journald.collect_list[].log_group_name] | unique[]' \
      "$home/etc/amazon-cloudwatch-agent.d/remuda.json"
  fi
  [[ $booted ]] || none 'what a CloudWatch agent has said or read' "$home/logs" "$home/var" -type f
}

# What no image may hold, and no host has but from its own launch.
secrets() {
  local homes=(/root /home/*)
  none 'credentials of a cloud or a registry' "${homes[@]}" -xdev '(' -name .aws -o -name .docker -o -name .netrc -o -name .git-credentials ')'
  same 'private keys' '' grep -rlsE --exclude-dir=ssh -e '-----BEGIN ([A-Z]+ )*PRIVATE KEY-----' /etc /root /home /opt/remuda /var/lib/remuda
}

sealed() {
  none 'a host key' /etc/ssh -name 'ssh_host_*'
  none 'a key to log in with' /root/ /home -path '*/.ssh/*' -type f
  expect 'machine-id is there, and empty' test -f /etc/machine-id -a ! -s /etc/machine-id
  expect 'dbus has no machine-id of its own' test -L /var/lib/dbus/machine-id -o ! -e /var/lib/dbus/machine-id
  expect 'no random seed' test ! -e /var/lib/systemd/random-seed
  none 'a history' /root /home -maxdepth 2 -name '.*_history'
  none 'what a launch left in /etc/remuda' /etc/remuda '(' -name host.json -o -name pre-runner -o -name post-release ')'
  expect 'no state of an agent' test ! -e /var/lib/remuda
  expect 'no state of docker' test ! -e /var/lib/docker
  none 'a log with something in it' /var/log -xdev -type f -size +0
  none 'a list of packages' /var/lib/apt/lists /var/cache/dnf -type f ! -name lock
  none 'an archive of a package' /var/cache/apt -name '*.deb'
  none 'an instance of cloud-init' /var/lib/cloud/instances /var/lib/cloud/instance
}

running() {
  expect 'machine-id is written' test -s /etc/machine-id
  expect 'firewall is active' systemctl --quiet is-active remuda-firewall.service
  expect 'rules of the firewall are loaded' nft list table inet remuda
  expect 'docker is not started without need' not systemctl --quiet is-active docker.service
}

tools
users
agent
runner
below_caches
units
settings
logs
secrets
if [[ $booted ]]; then running; else sealed; fi

if ((${#wrong[@]} > 0)); then
  printf 'check: not right: %s\n' "${wrong[@]}" >&2
  printf 'check: %d of %d are wrong\n' "${#wrong[@]}" "$checked" >&2
  exit 1
fi
printf 'check: all %d are right: %s, actions/runner %s\n' "$checked" "$(agentd version | head -n 1)" "${REMUDA_RUNNER_VERSION:-of any version}"
