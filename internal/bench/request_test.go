package bench

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// BenchmarkRequest: one request for several hosts, and their release.
func BenchmarkRequest(b *testing.B) {
	for _, n := range []int{1, 10, 50, 200} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := newWorld(b)
			w.fill(b, 256, nil)
			var took []time.Duration
			commits, used := w.file.Commits(), cpu(b)
			b.ResetTimer()
			for i := range b.N {
				run := fmt.Sprint(i)
				began := time.Now()
				got, err := w.client.Provision(b.Context(), &remudav1.ProvisionRequest{
					Repository: repository, RunId: run, RequestId: run, InstanceCount: proto.Int32(int32(n)),
				})
				took = append(took, time.Since(began))
				if err == nil && int(got.GetReusedCount()) != n {
					err = fmt.Errorf("run %s got %d reused hosts, want %d", run, got.GetReusedCount(), n)
				}
				if err == nil {
					err = w.giveBack(b.Context(), run)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(w.file.Commits()-commits)/float64(b.N), "commits/op")
			b.ReportMetric(float64((cpu(b)-used).Microseconds())/1000/float64(b.N), "cpu-ms/op")
			reportLatency(b, took)
		})
	}
}

// cpu is the processor time of this process until now. Unlike the time that passes, it does not grow with other load on the machine.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
