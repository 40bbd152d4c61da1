#!/bin/sh
# The init of a host on this machine, in place of systemd. It boots, keeps
# agentd running, and powers the host off when agentd has exited permanently.
# It leads the session and the process group of the host.
#
# usage: init HOST_DIR AGENT BOOT_ID BOOT_DELAY RESTART_DELAY LOG_BYTES
#
# File descriptor 3 is the lock under which one init at most is started.
umask 077
host=$1 agent=$2 boot_id=$3 boot_delay=$4 restart_delay=$5 log_bytes=$6
cd "$host" || exit 1

# Field 22 of stat is the start time, which tells this process from a later one
# with the same pid. The command, field 2, may hold anything up to the last ")".
read -r stat <"/proc/$$/stat" || exit 1
set -f
# shellcheck disable=SC2086 # to be split
set -- ${stat##*) }
echo "$$ ${20} $boot_id" >init.pid.new && mv init.pid.new init.pid || exit 1
exec 3>&-

say() { echo "init: $*" >>agentd.log; }

# The host lives until it is ended or its directory is gone.
wanted() { [ -e "$host/machine.json" ] && ! [ -e "$host/ending" ] && ! [ -e "$host/stopping" ] && ! [ -e "$host/stopped" ]; }

wanted && sleep "$boot_delay"
wanted && : >booted
while wanted; do
	if [ "$(wc -c <agentd.log)" -gt "$log_bytes" ]; then
		mv agentd.log agentd.log.1
	fi
	"$agent" --config "$host/agentd.yaml" </dev/null >>agentd.log 2>&1
	code=$?
	# The terminal exit codes: see the package comment.
	case $code in
	0 | 78)
		say "agentd exited with $code: powering off"
		exit 0
		;;
	esac
	say "agentd exited with $code: starting it again in $restart_delay s"
	sleep "$restart_delay"
done
