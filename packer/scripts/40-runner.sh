#!/usr/bin/env bash
# Unpacks actions/runner to /opt/actions-runner, from where the agent copies it for every run. The archive is checked before it is unpacked.
set -euo pipefail

case $(uname -m) in
  x86_64) arch=x64 ;;
  aarch64) arch=arm64 ;;
  *) echo "actions/runner is not made for $(uname -m)" >&2; exit 1 ;;
esac
name=actions-runner-linux-$arch-$REMUDA_RUNNER_VERSION.tar.gz
target=/opt/actions-runner

# Not in /tmp, which may be memory: the archive has 230 MB.
work=$(mktemp -d /var/tmp/remuda-runner.XXXXXX)
trap 'rm -rf "$work" "$target.new"' EXIT

curl --fail --silent --show-error --location --proto-redir '=https' --retry 5 --connect-timeout 20 --max-time 900 \
  --output "$work/$name" "${REMUDA_RUNNER_URL%/}/$name"
(cd "$work" && echo "$REMUDA_RUNNER_SHA256  $name" | sha256sum --check --strict --quiet -)

rm -rf "$target.new"
install -d -o root -g root -m 0755 "$target.new"
tar -xzf "$work/$name" -C "$target.new" --no-same-owner
# Only root changes what the next run is made of. The copies of a run get the modes of this: what the runner writes beside its programs
# are secrets, so only its user and root may read them.
chown -R root:root "$target.new"
chmod -R u+rwX,go+rX,go-w "$target.new"
chmod 0750 "$target.new"
rm -rf "$target"
mv "$target.new" "$target"

# .NET's libraries. The runner's own script knows those of Debian and Ubuntu by release, and Amazon Linux not at all.
if command -v apt-get >/dev/null; then
  if [[ -f $target/bin/installdependencies.sh ]]; then
    bash "$target/bin/installdependencies.sh" >/dev/null
  fi
else
  dnf -q -y install krb5-libs libicu lttng-ust openssl-libs zlib
fi
