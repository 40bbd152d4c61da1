#!/bin/sh
# Written by agentd. The runner runs it before the first step of every job and
# fails the job when it fails. A runner label is no lock: any workflow can name
# another run's. So only jobs of the run that this host serves may start, or of
# a job-scoped host one job of its scope.
set -u
job=@JOB_DIR@

run='' repository='' released='' worker='' scope='' released_scope=''
{
	read -r run
	read -r repository
	read -r released
	read -r worker
	read -r scope
	read -r released_scope
} <"$job/allow" 2>/dev/null || :

# The names of repositories are case-insensitive.
lower() { printf '%s' "$1" | tr '[:upper:]' '[:lower:]'; }

# A full disk must not fail the job: the agent also looks for the worker.
start() {
	printf 'x' >>"$job/box/jobs" || :
	printf '%s\n' "${GITHUB_JOB:-}" >"$job/box/busy" || :
	exit 0
}

# A scope is a repository, or an owner and all repositories of it.
in_scope() {
	named=$(lower "$1") whole=$(lower "$2")
	case $whole in
	'') return 1 ;;
	*/*) [ "$named" = "$whole" ] ;;
	*) case $named in "$whole"/?*) return 0 ;; *) return 1 ;; esac ;;
	esac
}

its_run=${GITHUB_RUN_ID:-} its_repository=${GITHUB_REPOSITORY:-}
if [ -n "$run" ] && [ "$its_run" = "$run" ] &&
	[ "$(lower "$its_repository")" = "$(lower "$repository")" ]; then
	start
fi
if in_scope "$its_repository" "$scope"; then
	[ -f "$job/box/jobs" ] && [ -s "$job/box/jobs" ] || start
	echo "remuda: this host serves one job, and has had it. Run the job again to get another host."
	exit 1
fi

# The worker that runs this hook had taken the job before the release.
if [ -n "$its_run" ] && [ "$its_run" = "$released" ]; then
	[ "$PPID" != "$worker" ] || start
	echo "remuda: this host was released from run $its_run and takes no further job of it. Run the job again to get another host."
	exit 1
fi
if in_scope "$its_repository" "$released_scope"; then
	[ "$PPID" != "$worker" ] || start
	echo "remuda: this host was released and takes no further job. Run the job again to get another host."
	exit 1
fi
serves='no run'
[ -z "$run" ] || serves="run $run of $repository"
[ -z "$scope" ] || serves="one job of $scope"
hint="A job may only run on the hosts of its own run: use runs-on: \${{ github.run_id }}."
[ -z "$scope" ] || hint="A job may only run on a host of its own repository or owner."
echo "$its_run of $its_repository" >"$job/box/refused" || :
echo "remuda: refused. This is a job of run $its_run of $its_repository, and this host serves $serves. $hint"
exit 1
