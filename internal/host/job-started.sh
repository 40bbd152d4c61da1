#!/bin/sh
# Written by agentd. The runner runs it before the first step of every job and
# fails the job when it fails. A runner label is no lock: any workflow can name
# another run's. So only jobs of the run that this host serves may start.
set -u
job=@JOB_DIR@

run='' repository='' released='' worker=''
{
	read -r run
	read -r repository
	read -r released
	read -r worker
} <"$job/allow" 2>/dev/null || :

# The names of repositories are case-insensitive.
lower() { printf '%s' "$1" | tr '[:upper:]' '[:lower:]'; }

# A full disk must not fail the job: the agent also looks for the worker.
start() {
	printf 'x' >>"$job/jobs" || :
	echo "$$" >"$job/busy" || :
	exit 0
}

its_run=${GITHUB_RUN_ID:-} its_repository=${GITHUB_REPOSITORY:-}
if [ -n "$run" ] && [ "$its_run" = "$run" ] &&
	[ "$(lower "$its_repository")" = "$(lower "$repository")" ]; then
	start
fi

if [ -n "$its_run" ] && [ "$its_run" = "$released" ]; then
	# The worker that runs this hook had taken the job before the release.
	[ "$PPID" != "$worker" ] || start
	echo "remuda: this host was released from run $its_run and takes no further job of it. Run the job again to get another host."
	exit 1
fi
serves='no run'
[ -z "$run" ] || serves="run $run of $repository"
echo "$its_run of $its_repository" >"$job/refused" || :
echo "remuda: refused. This is a job of run $its_run of $its_repository, and this host serves $serves. A job may only run on the hosts of its own run: use runs-on: \${{ github.run_id }}."
exit 1
