package cli

import (
	"time"

	"google.golang.org/grpc"

	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/cli/view"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// Snapshot is the fleet of a snapshot file.
type Snapshot struct {
	Conn grpc.ClientConnInterface
	// At is when it was taken.
	At time.Time
	// Lacks says in sentences what of the fleet is not in it.
	Lacks []string
}

// UseSnapshot reads the snapshot that the flags name, once. From then on it is asked, and it is the time at which it was taken.
func (a *App) UseSnapshot() error {
	if a.Snapshot == "" || a.snapshot != nil {
		return nil
	}
	s, err := a.ReadSnapshot(a.Snapshot, a.Stdin)
	if err != nil {
		return failure.Of("", err)
	}
	a.snapshot = &s
	if age := a.Now().Sub(s.At); age > 0 {
		a.note("This is the fleet as it was at %s, %s ago; times are relative to then.", s.At.UTC().Format(time.RFC3339), view.Span(age))
	} else {
		a.note("This is the fleet as it was at %s; times are relative to then.", s.At.UTC().Format(time.RFC3339))
	}
	for _, sentence := range s.Lacks {
		a.note("%s", sentence)
	}
	a.Now = func() time.Time { return s.At }
	return nil
}

// openSnapshot is a session with the fleet of a snapshot.
func (a *App) openSnapshot() (*session, error) {
	if err := a.UseSnapshot(); err != nil {
		return nil, err
	}
	return &session{app: a, fleet: remudav1.NewFleetServiceClient(a.snapshot.Conn)}, nil
}

// failedOffline is the error of a call of a snapshot.
func failedOffline(doing string, err error) error {
	failed := failure.FromStatus(doing, err)
	known, ok := failed.(*failure.Error)
	if !ok {
		return failed
	}
	switch known.Code {
	case failure.NotFound:
		known.Remedy += " A snapshot has no jobs that are over; controld knows more."
	case failure.Failed:
		known.Remedy = ""
	}
	return known
}
