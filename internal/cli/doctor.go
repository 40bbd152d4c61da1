package cli

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/remuda-ci/remuda/internal/cli/connect"
	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/cli/output"
	"github.com/remuda-ci/remuda/internal/cli/table"
	"github.com/remuda-ci/remuda/internal/cli/view"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// outcome is how a check ended.
type outcome string

const (
	fine   outcome = "ok"
	warned outcome = "warning"
	wrong  outcome = "failed"
)

var outcomeStyles = map[outcome]table.Style{fine: table.Good, warned: table.Warn, wrong: table.Bad}

// check is one line of the doctor.
type check struct {
	Check   string  `json:"check"`
	Outcome outcome `json:"outcome"`
	Detail  string  `json:"detail"`
	Remedy  string  `json:"remedy,omitempty"`
	code    failure.Code
}

// doctor looks at one controld, from the outside in.
type doctor struct {
	*session
	checks []check
}

// Doctor looks at everything between this machine and controld. Its exit code is that of the first check that failed.
func (a *App) Doctor(ctx context.Context) error {
	target, err := a.target()
	if err != nil {
		return err
	}
	d := &doctor{session: &session{app: a, target: target}}
	d.look(ctx)
	if a.Output.ForPrograms() {
		err = output.Value(a.Stdout, a.Output, map[string]any{"checks": d.checks})
	} else {
		err = d.table().Write(a.Stdout, a.Color())
	}
	if err != nil {
		return failure.Of("write checks", err)
	}
	for _, c := range d.checks {
		if c.Outcome == wrong {
			return &failure.Error{Code: c.code, Doing: c.Check, Err: errors.New(c.Detail), Remedy: c.Remedy}
		}
	}
	return nil
}

func (d *doctor) look(ctx context.Context) {
	d.files()
	if !d.connection(ctx) {
		return
	}
	s, err := d.app.openTarget(d.target)
	if err != nil {
		d.failed("connection", err)
		return
	}
	defer s.close()
	d.session = s
	d.api(ctx)
	d.readiness(ctx)
	if d.target.TokenFile != "" {
		d.add("permission", warned, "not tried: a token counts once", "")
		return
	}
	if d.permission(ctx) {
		d.clock(ctx)
		d.status(ctx)
	}
}

func (d *doctor) add(name string, o outcome, detail, remedy string) {
	d.checks = append(d.checks, check{Check: name, Outcome: o, Detail: detail, Remedy: remedy})
}

func (d *doctor) failed(name string, err error) {
	c := check{Check: name, Outcome: wrong, Detail: err.Error(), code: failure.CodeOf(err)}
	var known *failure.Error
	if errors.As(err, &known) {
		c.Detail, c.Remedy = known.Err.Error(), known.Remedy
	}
	d.checks = append(d.checks, c)
}

// files are those that the context names.
func (d *doctor) files() {
	t := d.target
	if t.CertFile != "" {
		c, err := connect.ReadCertificate(t.CertFile)
		if err != nil {
			d.failed("client certificate", failure.Of("", err))
		} else {
			d.certificate("client certificate", c, "`controld ca issue --replace` renews it.")
		}
	}
	if t.TokenFile != "" {
		if _, err := connect.ReadToken(t.TokenFile); err != nil {
			d.failed("token", failure.Of("", err))
		} else {
			d.add("token", fine, t.TokenFile+" has one", "")
		}
	}
}

// soon is how long before its end a certificate is reported: two weeks are enough to renew it in working hours.
const soon = 14 * 24 * time.Hour

func (d *doctor) certificate(name string, c *x509.Certificate, remedy string) {
	now := d.app.Now()
	detail := fmt.Sprintf("%s, valid until %s (%s)", c.Subject, c.NotAfter.UTC().Format(time.DateOnly), view.When(c.NotAfter, now))
	switch {
	case now.Before(c.NotBefore):
		d.checks = append(d.checks, check{name, wrong, fmt.Sprintf("%s, valid from %s", c.Subject, c.NotBefore.UTC().Format(time.RFC3339)),
			"Is the clock of this machine right?", failure.NotAllowed})
	case now.After(c.NotAfter):
		d.checks = append(d.checks, check{name, wrong, detail, remedy, failure.NotAllowed})
	case c.NotAfter.Sub(now) < soon:
		d.add(name, warned, detail, remedy)
	default:
		d.add(name, fine, detail, "")
	}
}

// connection reports whether there is one.
func (d *doctor) connection(ctx context.Context) bool {
	shaken, err := d.target.Probe(ctx)
	if err != nil {
		d.failed("connection", err)
		return false
	}
	how := "plaintext"
	if shaken.TLS != nil {
		how = "TLS"
	}
	d.add("connection", fine, fmt.Sprintf("%s, %s, in %s", d.target.Address, how, shaken.Took.Round(100*time.Microsecond)), "")
	if shaken.TLS != nil {
		d.certificate("server certificate", shaken.TLS.PeerCertificates[0], "`controld ca issue --replace controld` renews it.")
	}
	return true
}

// api compares the methods of this command with those that controld has.
func (d *doctor) api(ctx context.Context) {
	bounded, cancel := d.bound(ctx, DefaultTimeout)
	defer cancel()
	missing, err := missingMethods(bounded, d.conn)
	switch {
	case err != nil:
		d.failed("API", failure.FromStatus("", err))
	case len(missing) > 0:
		d.add("API", warned, "controld is older than this command and has no "+strings.Join(missing, ", "), "Upgrade controld, or use the remuda of its version.")
	default:
		d.add("API", fine, "remuda.v1 with all methods that this command knows", "")
	}
}

func (d *doctor) readiness(ctx context.Context) {
	resp, err := call(ctx, d.session, DefaultTimeout, "", healthv1.NewHealthClient(d.conn).Check, &healthv1.HealthCheckRequest{})
	switch {
	case err != nil:
		d.failed("readiness", err)
	case resp.GetStatus() != healthv1.HealthCheckResponse_SERVING:
		d.checks = append(d.checks, check{"readiness", wrong, "controld answers and is " + resp.GetStatus().String(),
			"Its log says what is missing, such as tables that Refresh creates.", failure.Unavailable})
	default:
		d.add("readiness", fine, "controld serves", "")
	}
}

func (d *doctor) permission(ctx context.Context) bool {
	resp, err := call(ctx, d.session, DefaultTimeout, "", d.fleet.ListPools, &remudav1.ListPoolsRequest{PageSize: pageSize})
	if err != nil {
		d.failed("permission", err)
		return false
	}
	var pools []string
	for _, p := range resp.GetPools() {
		pools = append(pools, p.GetName())
	}
	d.add("permission", fine, "may look at the fleet, whose pools are "+strings.Join(pools, ", "), "")
	return true
}

const (
	// ahead is how far a heartbeat may be ahead of this clock: agents correct theirs, and a call takes a moment.
	ahead = 5 * time.Second
	// behind is how old the newest heartbeat of a healthy host may be: one comes every 15 s, and a host without one for
	// 60 s is not healthy.
	behind = 65 * time.Second
)

// clock compares this machine's clock with the heartbeats of healthy hosts, since gRPC has no time of the server.
func (d *doctor) clock(ctx context.Context) {
	list, err := d.hosts(ctx, &remudav1.ListInstancesRequest{States: alive})
	if err != nil {
		d.failed("clock", err)
		return
	}
	var newest time.Time
	for _, h := range list {
		if t := h.GetHeartbeatTime(); h.GetHealthy() && t != nil && t.AsTime().After(newest) {
			newest = t.AsTime()
		}
	}
	late := d.app.Now().Sub(newest)
	switch remedy := "Set the clock of this machine by NTP; times relative to now are wrong until then."; {
	case newest.IsZero():
		d.add("clock", fine, "not compared: no host has a heartbeat to compare with", "")
	case late < -ahead:
		d.add("clock", warned, fmt.Sprintf("this clock is at least %s behind the hosts'", view.Span(late)), remedy)
	case late > behind:
		d.add("clock", warned, fmt.Sprintf("this clock is about %s ahead of the hosts'", view.Span(late)), remedy)
	default:
		d.add("clock", fine, "agrees with the newest heartbeat, "+view.Span(max(late, 0))+" ago", "")
	}
}

func (d *doctor) table() table.Table {
	t := table.Table{Head: []string{"CHECK", "OUTCOME", "DETAIL"}}
	for _, c := range d.checks {
		detail := c.Detail
		if c.Remedy != "" && c.Outcome == warned {
			detail += ". " + c.Remedy
		}
		t.Rows = append(t.Rows, []table.Cell{{Text: c.Check}, {Text: string(c.Outcome), Style: outcomeStyles[c.Outcome]}, {Text: detail}})
	}
	return t
}
