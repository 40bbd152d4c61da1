package dynamo_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// TestClaimIsWhatLifecycleSays: the claim is an expression of DynamoDB's, and
// must give what Record.Claimed does, whatever the record has.
func TestClaimIsWhatLifecycleSays(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	bare := lifecycle.Record{
		HostKey: "bare", InstanceID: "i-bare", State: lifecycle.StateIdle, Version: 1, Assignment: 2,
		Threshold: began.Add(time.Hour), TrustKey: repository, PooledAt: began,
	}
	// What no pooled host should have, but a claim must deal with.
	full := pooledRecord("full")
	full.RunID, full.RunAttempt, full.RequestID, full.Labels = "old", 7, "old", []string{"old"}
	full.Registration = &lifecycle.Registration{Kind: lifecycle.RegistrationJIT, URL: "old", Secret: "old"}
	full.RunnerName, full.GitHubRunnerID, full.JobsOf, full.Forks, full.ClaimFailures = "old", 99, "old", true, 1
	full.RuntimeEndsAt, full.ReleasedAt, full.Hold = began, began, began
	full.OrphanAt, full.IdleDetectedAt, full.ScaleDownAt, full.ExpiresAt = began, began, began, began.Add(time.Hour)
	forJob := claimOf("job", "job:12345678901")
	forJob.JobsOf, forJob.Forks, forJob.GitHubRunnerID = repository, true, 1<<53+1
	job := full
	job.HostKey = "job"
	alone := full
	alone.HostKey = "alone"
	empty := claimOf("alone", "")
	empty.RunAttempt, empty.RequestID, empty.MaxRuntime, empty.Labels, empty.Registration = 0, "", 0, nil, nil

	for _, test := range []struct {
		record lifecycle.Record
		claim  lifecycle.Claim
	}{{bare, claimOf("bare", runID)}, {full, claimOf("full", runID)}, {job, forJob}, {alone, empty}} {
		t.Run(test.record.HostKey, func(t *testing.T) {
			w.create(t, test.record)
			want, err := test.record.Claimed(test.claim)
			if err != nil {
				t.Fatal(err)
			}
			want.Version = 2
			got, err := w.ClaimInstance(t.Context(), test.claim)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("claimed (-want +got):\n%s", diff)
			}
			// The row is as an update would have left it, indexes and all.
			claimed := w.item(t, "remuda-instances", map[string]string{"hostKey": got.HostKey})
			if _, err := w.UpdateInstance(t.Context(), got); err != nil {
				t.Fatal(err)
			}
			updated := w.item(t, "remuda-instances", map[string]string{"hostKey": got.HostKey})
			for _, own := range []string{"version", "writeId"} {
				delete(claimed, own)
				delete(updated, own)
			}
			if diff := cmp.Diff(plain(updated), plain(claimed)); diff != "" {
				t.Errorf("attributes (-of an update +of the claim):\n%s", diff)
			}
		})
	}
}
