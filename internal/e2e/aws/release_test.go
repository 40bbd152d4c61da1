package aws_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// releases are how many make one iteration: a median wants a sample.
const releases = 20

// BenchmarkRelease: from the call of Release to the answer that the host is pooled, with DynamoDB Local as the store. The host
// is a real agentd that deregisters with the stand-in's runner and cleans itself.
func BenchmarkRelease(b *testing.B) {
	s := newStage(b)
	_, err := s.fleet.Refresh(s.ctx, &remudav1.RefreshRequest{}) // makes the tables
	check(b, err)
	s.provision(ask("1", 1))
	s.release("1")
	b.ResetTimer()
	var took []time.Duration
	for i := range b.N * releases {
		run := fmt.Sprint(1000 + i)
		s.provision(ask(run, 1))
		time.Sleep(time.Duration(i*37%500) * time.Millisecond) // so that releases meet the agent's polling at any point of it
		began := time.Now()
		s.release(run)
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "p50-ms")
	b.ReportMetric(float64(took[len(took)*9/10].Milliseconds()), "p90-ms")
}
