package agent

import (
	"regexp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// said is what the output of actions/runner says about whose fault its end was.
type said struct {
	cause lifecycle.Cause
	text  *regexp.Regexp
}

// refusals are what the runner prints when GitHub has refused it, the most particular first. The texts are those of actions/runner 2.336,
// below src/, except what GitHub itself says.
var refusals = []said{
	// GitHub's words, which BrokerHttpClient.cs:121-125 passes on.
	{lifecycle.CauseVersion, regexp.MustCompile(`(?i)runner version \S+ is (deprecated|not supported|too old)|version of the runner is (deprecated|not supported|too old)` +
		`|RunnerVersionTooOld|minimum (required |supported )?(runner )?version`)},
	// BrokerMessageListener.cs:494-497 and ConfigurationManager.cs:454-462.
	{lifecycle.CauseClock, regexp.MustCompile(`clock may be out of sync with the server time|Current server time is`)},
	// ConfigurationManager.cs:239-246.
	{lifecycle.CauseGroup, regexp.MustCompile(`Could not find any self-hosted runner groups?\b`)},
	// GitHub's words in the body of a 403 or 429.
	{lifecycle.CauseRateLimit, regexp.MustCompile(`(?i)secondary rate limit|API rate limit exceeded|Http response code: TooManyRequests `)},
	// RunnerDotcomServer.cs:159 and ConfigurationManager.cs:868: whatever the status, GitHub gave it.
	{lifecycle.CauseGitHub, regexp.MustCompile(`(?i)Http response code: \w+ from '(get|post|patch|delete) https?://|Response status code does not indicate success: \d`)},
	// ConfigurationManager.cs:279-335: the answer to an earlier attempt was lost, and its registration is there.
	{lifecycle.CauseGitHub, regexp.MustCompile(`A runner exists with the same name`)},
	// Runner.cs:823-830 and BrokerMessageListener.cs:191-206.
	{lifecycle.CauseGitHub, regexp.MustCompile(`The runner no longer exists on the server|The runner registration has been deleted from the server`)},
}

// RefusedBy returns the cause of an end of the runner that its output explains by a refusal of GitHub's; CauseNone if it does not.
func RefusedBy(output string) lifecycle.Cause {
	for _, r := range refusals {
		if r.text.MatchString(output) {
			return r.cause
		}
	}
	return lifecycle.CauseNone
}

// removedBefore matches the refusal to remove a registration that GitHub no longer has (RunnerDotcomServer.cs:106-110,157-167). It is
// read by its status: a token that is refused has another one.
var removedBefore = regexp.MustCompile(`(?i)Http response code: NotFound from 'delete https?://[^\s']+/actions/runners/\d+'`)

// RemovedBefore reports whether the output of config.sh remove says that the registration was already gone from GitHub.
func RemovedBefore(output string) bool { return removedBefore.MatchString(output) }

// jobAssigned matches the refusal to remove a registration whose runner has a job: 422 of the runner-admin flow, for which .NET
// has two names, and the server's sentence in the older flow (ConfigurationManager.cs:560-594).
var jobAssigned = regexp.MustCompile(`(?i)Http response code: Unprocessable(Entity|Content) from 'delete https?://[^\s']+/actions/runners/\d+'` +
	`|is (still|currently) running a job`)

// JobAssigned reports whether the output of config.sh remove says that GitHub keeps the registration since its runner has a job.
func JobAssigned(output string) bool { return jobAssigned.MatchString(output) }
