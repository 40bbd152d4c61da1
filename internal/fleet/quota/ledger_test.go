package quota_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/fleet/quota"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/warmrequest"
	"github.com/remuda-ci/remuda/internal/policy"
)

// TestToAudit: a sweep looks through the ledgers of the repositories of machines, also of those whose records are lost. The hosts of warm pools are of none.
func TestToAudit(t *testing.T) {
	ld := &quota.Ledger{Limits: policy.Limits{HostsPerRepository: 3}}
	var of []string
	for _, l := range ld.ToAudit([]lifecycle.Machine{{Repository: "acme/lost"}, {Repository: warmrequest.Repository}, {Repository: "acme/lost"}}, []string{"acme/app"}, []string{"acme/lib", "acme/app"}) {
		of = append(of, l.Of)
	}
	if diff := cmp.Diff([]string{"acme/lost", "acme/app", "acme/lib"}, of); diff != "" {
		t.Errorf("ledgers (-want +got):\n%s", diff)
	}
}
