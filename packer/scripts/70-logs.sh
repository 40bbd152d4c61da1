#!/usr/bin/env bash
# Has hosts send what agentd, cloud-init and the kernel say to CloudWatch Logs, if REMUDA_HOST_LOGS names a log group. What jobs print is not
# among it: GitHub masks secrets on its own pages alone. The amazon-cloudwatch-agent is checked by AWS's signature before it is installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

[[ -n ${REMUDA_HOST_LOGS:-} ]] || exit 0
: "${REMUDA_CLOUDWATCH_AGENT_VERSION:?the version of amazon-cloudwatch-agent, with its build}"
url=${REMUDA_CLOUDWATCH_AGENT_URL:-https://amazoncloudwatch-agent.s3.amazonaws.com}
# AWS's key, as "Verifying the signature of the CloudWatch agent package" of the CloudWatch User Guide names it.
key=${REMUDA_CLOUDWATCH_AGENT_KEY:-937616F3450B7D806CBD9725D58167303B789C72}
home=/opt/aws/amazon-cloudwatch-agent

fail() { echo "$*" >&2; exit 1; }

[[ $REMUDA_HOST_LOGS =~ ^[A-Za-z0-9_/.#-]{1,512}$ ]] || fail "REMUDA_HOST_LOGS is not the name of a log group: $REMUDA_HOST_LOGS"

case $(uname -m) in
  x86_64) arch=amd64 ;;
  aarch64) arch=arm64 ;;
  *) fail "the CloudWatch agent is not made for $(uname -m)" ;;
esac
case $(. /etc/os-release && echo "$ID") in
  debian) system=debian package=amazon-cloudwatch-agent.deb ;;
  ubuntu) system=ubuntu package=amazon-cloudwatch-agent.deb ;;
  amzn) system=amazon_linux package=amazon-cloudwatch-agent.rpm ;;
  *) fail "the CloudWatch agent has no package for this system" ;;
esac

# Not in /tmp, which may be memory, and the package is large.
work=$(mktemp -d /var/tmp/remuda-logs.XXXXXX)
trap 'rm -rf "$work"' EXIT

fetch() {
  curl --fail --silent --show-error --location --proto-redir '=https' --retry 5 --connect-timeout 20 --max-time 900 \
    --output "$work/${1##*/}" "${url%/}/$1"
}

# keyring is AWS's file of the key without its armor, which gpgv does not take. Whose key it is does not matter here: signer says who signed.
keyring() {
  if grep -qs -- '-----BEGIN PGP' "$work/amazon-cloudwatch-agent.gpg"; then
    sed -e '1,/^[[:space:]]*$/d' -e '/^=/d' -e '/^-----END/,$d' "$work/amazon-cloudwatch-agent.gpg" | base64 --decode --ignore-garbage
  else
    cat "$work/amazon-cloudwatch-agent.gpg"
  fi
}

# signer prints the fingerprint of the key whose signature the package has, or nothing.
signer() {
  gpgv --keyring "$work/keyring" --status-fd 1 "$work/$package.sig" "$work/$package" 2>"$work/gpgv" |
    awk '$2 == "VALIDSIG" { print $NF }'
}

fetch "$system/$arch/$REMUDA_CLOUDWATCH_AGENT_VERSION/$package"
fetch "$system/$arch/$REMUDA_CLOUDWATCH_AGENT_VERSION/$package.sig"
fetch assets/amazon-cloudwatch-agent.gpg
keyring >"$work/keyring"
signed=$(signer) || fail "the CloudWatch agent has no valid signature: $(cat "$work/gpgv")"
[[ $signed == "$key" ]] || fail "the CloudWatch agent is signed by ${signed:-no known key}, not by $key"

if [[ $package == *.deb ]]; then
  apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends --reinstall --allow-downgrades -o APT::Sandbox::User=root \
    "$work/$package" >/dev/null
else
  dnf -q -y install "$work/$package" || dnf -q -y reinstall "$work/$package"
fi
# An older version has a valid signature too.
installed=$(cat "$home/bin/CWAGENT_VERSION")
[[ $installed == "$REMUDA_CLOUDWATCH_AGENT_VERSION" ]] || fail "the CloudWatch agent is $installed, not $REMUDA_CLOUDWATCH_AGENT_VERSION"

install -d -o root -g root -m 0755 "$home/etc/amazon-cloudwatch-agent.d" /etc/systemd/system/amazon-cloudwatch-agent.service.d
jq --arg group "$REMUDA_HOST_LOGS" '.logs.logs_collected.journald.collect_list[].log_group_name = $group' files/cloudwatch-agent.json \
  >"$work/remuda.json"
install -o root -g root -m 0644 "$work/remuda.json" "$home/etc/amazon-cloudwatch-agent.d/remuda.json"
install -o root -g root -m 0644 files/cloudwatch-agent.conf /etc/systemd/system/amazon-cloudwatch-agent.service.d/remuda.conf
systemctl --quiet enable amazon-cloudwatch-agent.service
