package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/cli/view"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// status looks at what controld says of itself: the replicas, their versions and clocks, the hold on the fleet, and certificates and keys. An
// older controld, which the check of the API names, does not say it.
func (d *doctor) status(ctx context.Context) {
	bounded, cancel := d.bound(ctx, DefaultTimeout)
	defer cancel()
	resp, err := d.fleet.GetStatus(bounded, &remudav1.GetStatusRequest{})
	switch {
	case status.Code(err) == codes.Unimplemented:
		return
	case err != nil:
		d.failed("replicas", failure.FromStatus("", err))
		return
	}
	d.replicas(resp.GetReplicas())
	if h := resp.GetHold(); h != nil {
		d.add("hold", warned, strings.TrimSuffix(view.Hold(h), "."), "`remuda hold --all --off` ends the hold.")
	}
	for _, c := range resp.GetCredentials() {
		detail := view.CredentialDetail(c, d.app.Now())
		if wrong := view.CredentialProblem(c, d.app.Now()); wrong != "" {
			d.add(c.GetSetting(), warned, detail+": "+wrong, "")
			continue
		}
		d.add(c.GetSetting(), fine, detail, "")
	}
}

func (d *doctor) replicas(all []*remudav1.Replica) {
	if len(all) == 0 {
		return
	}
	var texts, off []string
	versions := map[string]bool{}
	for _, r := range all {
		text := fmt.Sprintf("%s (%s)", r.GetName(), view.Version(r))
		if began := r.GetStartTime(); began != nil {
			text = fmt.Sprintf("%s (%s, since %s)", r.GetName(), view.Version(r), began.AsTime().UTC().Format(time.RFC3339))
		}
		texts, versions[r.GetVersion()] = append(texts, text), true
		if view.ClockIsOff(r) {
			off = append(off, fmt.Sprintf("the clock of %s is %s", r.GetName(), view.Clock(r)))
		}
	}
	detail := strings.Join(texts, ", ")
	if len(versions) > 1 {
		d.add("replicas", warned, detail+" are of different versions", "During an upgrade this is right; docs/upgrade.md says what two versions do with each other's records.")
	} else {
		d.add("replicas", fine, detail, "")
	}
	if len(off) > 0 {
		d.add("clocks", warned, strings.Join(off, ", "), "Set them by NTP: a controld whose clock is off by more than a minute does nothing.")
	}
}
