// Package firstaccount holds what Remuda assumes about AWS against an account itself: it makes roles with the policies of controld and of
// hosts, launches a few small machines as controld does, watches them, says of each assumption whether it holds, and removes everything.
package firstaccount

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"

	"github.com/remuda-ci/remuda/internal/findings"
)

// Options say what to check, and where.
type Options struct {
	// AWS is the SDK with the credentials of an administrator. Required.
	AWS sdk.Config
	// Subnets to launch into; none: the default ones of the default VPC.
	Subnets []string
	// Groups are the security groups of machines; none: the default one of the VPC.
	Groups []string
	// Image is one built for the fleet, whose boot is measured; empty: the newest Amazon Linux 2023 for arm64, which has no agentd.
	Image string
	// KMSKeyID is a key for a machine's volume; empty: that check is undecided.
	KMSKeyID string
	// Only are the names of the checks to make; empty: all.
	Only []string
	// Times are how long to wait. Zero fields have their default.
	Times Times
	// Progress gets a line for each step, and every ten seconds of a wait. Default: nothing.
	Progress io.Writer
}

// Times are how long to wait for AWS. The defaults are several times what it usually takes.
type Times struct {
	// Poll is between two looks. Default: 2 s.
	Poll time.Duration
	// Settle is how long new roles may be unknown to some service: a refusal before that decides nothing. Default: 1 minute.
	Settle time.Duration
	// Turn is between two calls of CreateFleet. Default: half a second, as controld makes them.
	Turn time.Duration
	// Boot bounds the wait for a machine that runs, passes EC2's checks and writes to its console. Default: 6 minutes.
	Boot time.Duration
	// End bounds the wait for the end of a machine. Default: 4 minutes.
	End time.Duration
	// All bounds the checks together. Default: 45 minutes, in which the sessions of the roles last.
	All time.Duration
	// Clean bounds the removal of everything that was made. Default: 6 minutes.
	Clean time.Duration
}

func (t Times) withDefaults() Times {
	for at, usual := range map[*time.Duration]time.Duration{
		&t.Poll: 2 * time.Second, &t.Settle: time.Minute, &t.Turn: time.Second / perSecond, &t.Boot: 6 * time.Minute, &t.End: 4 * time.Minute, &t.All: 45 * time.Minute, &t.Clean: 6 * time.Minute,
	} {
		if *at == 0 {
			*at = usual
		}
	}
	return t
}

// check decides some assumptions in one go.
type check struct {
	name string
	// does says what happens, for the plan and the progress.
	does string
	// without, if it is set, says why the check cannot be made with some options; empty: it can.
	without     func(Options) string
	assumptions []findings.Assumption
	run         func(context.Context, *session) error
}

// checks are all of them, in the order in which they are made. The last one ends the machine that the others look at.
var checks = []check{tablesCheck, queuesCheck, policyCheck, dryRunCheck, launchCheck, tokenCheck, architecturesCheck, errorsCheck, rateCheck, keysCheck, bootCheck, hostCheck, endCheck}

// Checks are the names of all checks.
func Checks() []string {
	var names []string
	for _, c := range checks {
		names = append(names, c.name)
	}
	return names
}

// Assumptions are all that the checks decide, by the name of their check.
func Assumptions() map[string][]findings.Assumption {
	all := map[string][]findings.Assumption{}
	for _, c := range checks {
		all[c.name] = c.assumptions
	}
	return all
}

// Report is the result of a run.
type Report struct {
	Account   string             `json:"account"`
	Region    string             `json:"region"`
	Image     string             `json:"image"`
	StartedAt time.Time          `json:"started_at"`
	Findings  []findings.Finding `json:"findings"`
}

// Text writes a table of the findings, and more about those that are refuted.
func (r Report) Text(out io.Writer) error {
	return findings.Text(out, fmt.Sprintf("What Remuda assumes, in account %s and %s", r.Account, r.Region), r.Findings)
}

// Run makes the checks and removes everything that it made, also when ctx ends. An error of a check leaves its other assumptions
// undecided, and the next check is made. The report is as complete as it could be made, whatever the error, and what is left in the account
// comes first in the error. Where another run has left something, nothing is made.
func Run(ctx context.Context, o Options) (report Report, err error) {
	s, err := newSession(o)
	if err != nil {
		return report, err
	}
	report = Report{Region: o.AWS.Region, StartedAt: time.Now().UTC().Truncate(time.Second)}
	if err := s.look(ctx); err != nil {
		return report, err
	}
	report.Account, report.Image = s.account, s.image.id
	defer func() { err = errors.Join(s.cleanUp(ctx), err) }()
	ctx, stop := context.WithTimeoutCause(ctx, s.Times.All, fmt.Errorf("the checks took longer than %s", findings.Seconds(s.Times.All)))
	defer stop()
	if err := s.setUp(ctx); err != nil {
		for _, c := range s.Options.checks() {
			report.Findings = append(report.Findings, s.Findings(c.name, c.assumptions, err.Error())...)
		}
		return report, err
	}
	for _, c := range s.Options.checks() {
		report.Findings = append(report.Findings, s.make(ctx, c)...)
	}
	if ctx.Err() != nil {
		return report, interrupted(ctx)
	}
	return report, errors.Join(s.failed...)
}

var errInterrupted = errors.New("it was interrupted")

// interrupted is why ctx has ended.
func interrupted(ctx context.Context) error {
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return errInterrupted
}

// checks are those to make.
func (o Options) checks() []check {
	return slices.DeleteFunc(slices.Clone(checks), func(c check) bool { return len(o.Only) > 0 && !slices.Contains(o.Only, c.name) })
}

// complete fills in defaults and checks what can be checked without AWS.
func (o *Options) complete() error {
	for _, name := range o.Only {
		if !slices.Contains(Checks(), name) {
			return fmt.Errorf("there is no check %q; there are %s", name, strings.Join(Checks(), ", "))
		}
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	o.Times = o.Times.withDefaults()
	return nil
}
