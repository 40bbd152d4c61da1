#!/bin/sh
# Written by agentd. The runner runs it before everything else of a job. A
# runner label is no lock: any workflow can name another run's. So only jobs of
# the run that this host serves may start, or of a job-scoped host one job of
# its scope, and of a fork only if that is allowed. On a host that has registered
# ahead of need a job waits until the agent knows the run that has claimed it.
#
# A hook that fails does not end its job: steps with always() and the pre
# scripts of actions still run. So a refusal ends the worker, and the listener
# then fails the job.
set -u
job=@JOB_DIR@ summary=@JOB_SUMMARY@

# A file that cannot be read allows nothing.
read_allow() {
	run='' repository='' released='' worker='' scope='' released_scope='' forks='' released_forks='' standby=''
	{
		read -r run
		read -r repository
		read -r released
		read -r worker
		read -r scope
		read -r released_scope
		read -r forks
		read -r released_forks
		read -r standby
	} <"$job/allow" 2>/dev/null || :
}

# The names of repositories are case-insensitive. A name has one line.
same_name() {
	printf '%s\n%s\n' "$1" "$2" | tr '[:upper:]' '[:lower:]' | {
		IFS= read -r one && IFS= read -r other && [ "$one" = "$other" ] && ! read -r one
	}
}

# A full disk must not fail the job: the agent also looks for the worker.
start() {
	printf 'x' >>"$job/box/jobs" || :
	printf '%s\n' "${GITHUB_JOB:-}" >"$job/box/busy" || :
	cat "$job/introduction" 2>/dev/null || : # how the host came to this run
	summarize 2>/dev/null || :
	exit 0
}

# The same, folded, for the page of the run. The runner makes the file for each step, hooks too, and sends what it has.
summarize() {
	[ "$summary" = true ] && [ -s "$job/introduction" ] && [ -f "${GITHUB_STEP_SUMMARY:-}" ] || return 0
	sed -e 's/&/\&amp;/g' -e 's/</\&lt;/g' -e 's/>/\&gt;/g' -e 's/^/- /' \
		-e 's|^- ::group::\(.*\)$|<details><summary>\1</summary>\n|' -e 's|^- ::endgroup::$|\n</details>\n|' \
		"$job/introduction" >>"$GITHUB_STEP_SUMMARY"
}

# since is when a process started, which tells it from a later one with its pid; '' if that cannot be known.
look_since() {
	since=''
	read -r stat <"/proc/$1/stat" || return
	# shellcheck disable=SC2086 # into fields, from the third on
	set -- ${stat##*) }
	since=${20:-}
} 2>/dev/null

# Whether the worker that was there at $began is known to have ended. Its steps
# would run after an exit of this hook, so what is not known counts as no.
worker_ended() {
	look_since "$PPID" || :
	if [ -z "$since" ]; then
		[ ! -d "/proc/$PPID" ]
	else
		[ -n "$began" ] && [ "$since" != "$began" ]
	fi
}

# Nothing in here may fail or wait before the worker is dead. A job can put a
# pipe in the place of a file, on which a write waits; the agent reads the
# files, and ends a worker that this script did not.
note() { [ -p "$1" ] || echo "$2" >"$1" || :; }

refuse() {
	trap '' INT TERM HUP
	echo "remuda: $1" || :
	# The log of a step that does not end may be lost. What a worker that dies
	# has written to its standard error is shown with the failed job. Writing to
	# it waits if the listener is gone.
	echo "remuda: $1" >>"/proc/$PPID/fd/2" &
	look_since "$PPID" || :
	started=$since
	note "$job/box/refused-worker" "$PPID $started"
	sleep @REFUSAL_WAIT@ || : # until the line above is on GitHub
	# After the end of the worker its pid may be another's.
	look_since "$PPID" || :
	[ "$since" != "$started" ] || [ "$PPID" -le 1 ] || kill -KILL "$PPID" || :
	exit 1
}

# A scope is a repository, or an owner and all repositories of it.
in_scope() {
	case $2 in
	'') return 1 ;;
	*/*) same_name "$1" "$2" ;;
	*) case $1 in */?*) same_name "${1%%/*}" "$2" ;; *) return 1 ;; esac ;;
	esac
}

# A job of a fork that is refused counts as the one job of its host: GitHub has
# given it to this host in the place of another. check-fork reads the payload of
# the job's event, which the runner writes before this hook. It exits with 0 if the
# job is not of a fork and with 1 if it is. Any other status lets nothing in, also
# that of a program that is missing or was killed.
start_unless_fork() {
	[ "$1" != forks ] || start
	verdict=0
	@AGENTD@ check-fork || verdict=$?
	[ "$verdict" != 0 ] || start
	printf 'x' >>"$job/box/jobs" || :
	[ "$verdict" = 1 ] || refuse "refused. The payload of this job's event cannot be read, and this host takes no job that may be of a fork."
	refuse "refused. This job is of a fork, and this host takes none (forks: false)."
}

# The job starts, or it is refused. Nothing from here on has a command in $( ), and the shell has read all of it before the trap is set: bash 5.2 fails
# if a trap comes while it reads such a command ("unexpected EOF while looking for matching )"), and then the worker would live.
judge() {
	# The run of this job may have claimed the host a moment ago, and the agent does
	# not know it yet. If the worker ends before that, its job was canceled.
	read_allow
	if [ "$standby" = standby ]; then
		echo "remuda: this host waits for a run, and this job until the host knows its run." || :
		look_since "$PPID" || :
		began=$since
		polls=@STANDBY_POLLS@
		while [ "$standby" = standby ] && [ "$polls" -gt 0 ]; do
			sleep 0.1 || :
			polls=$((polls - 1))
			if worker_ended; then exit 1; fi
			read_allow
		done
	fi

	its_run=${GITHUB_RUN_ID:-} its_repository=${GITHUB_REPOSITORY:-}
	if [ -n "$run" ] && [ "$its_run" = "$run" ] &&
		same_name "$its_repository" "$repository"; then
		start
	fi
	if in_scope "$its_repository" "$scope"; then
		[ -f "$job/box/jobs" ] && [ -s "$job/box/jobs" ] || start_unless_fork "$forks"
		refuse "this host serves one job, and has had it. Run the job again to get another host."
	fi

	# The worker that runs this hook had taken the job before the release.
	if [ -n "$its_run" ] && [ "$its_run" = "$released" ]; then
		[ "$PPID" != "$worker" ] || start
		refuse "this host was released from run $its_run and takes no further job of it. Run the job again to get another host."
	fi
	if in_scope "$its_repository" "$released_scope"; then
		[ "$PPID" != "$worker" ] || start_unless_fork "$released_forks"
		refuse "this host was released and takes no further job. Run the job again to get another host."
	fi
	serves='no run'
	[ -z "$run" ] || serves="run $run of $repository"
	[ -z "$scope" ] || serves="one job of $scope"
	hint="A job may only run on the hosts of its own run: use runs-on: \${{ github.run_id }}."
	[ -z "$scope" ] || hint="A job may only run on a host of its own repository or owner."
	note "$job/box/refused" "$its_run of $its_repository"
	refuse "refused. This is a job of run $its_run of $its_repository, and this host serves $serves. $hint"
}

# The worker would go on after a hook that a signal has ended.
trap 'refuse "this job was interrupted before this host knew whether it may run."' INT TERM HUP
judge
