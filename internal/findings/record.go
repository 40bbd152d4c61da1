package findings

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/retry"
)

// Record is what a run has found so far in its present check, and where it says what it does.
type Record struct {
	progress io.Writer
	begun    time.Time
	check    string
	decided  map[string]Finding

	mu sync.Mutex // of progress
}

// NewRecord begins a run. progress gets a line for each step.
func NewRecord(progress io.Writer) *Record {
	return &Record{progress: progress, begun: time.Now(), decided: map[string]Finding{}}
}

// Begin says that from now on the check of the name is made.
func (r *Record) Begin(check string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.check, r.decided = check, map[string]Finding{}
}

// Decide gives the verdict on an assumption of the present check.
func (r *Record) Decide(name string, holds bool, saw string, args ...any) {
	verdict := Refuted
	if holds {
		verdict = Confirmed
	}
	r.put(name, verdict, saw, args...)
}

// Leave says why an assumption of the present check is not decided.
func (r *Record) Leave(name, saw string, args ...any) { r.put(name, Undecided, saw, args...) }

func (r *Record) put(name string, verdict Verdict, saw string, args ...any) {
	f := Finding{Verdict: verdict, Saw: fmt.Sprintf(saw, args...)}
	r.decided[name] = f
	r.Say("%s is %s: %s", name, verdict, f.Saw)
}

// Findings are those of a check. What it did not decide is undecided for the given reason.
func (r *Record) Findings(check string, assumptions []Assumption, otherwise string) []Finding {
	var list []Finding
	for _, a := range assumptions {
		f, ok := r.decided[a.Name]
		if !ok {
			f = Finding{Verdict: Undecided, Saw: otherwise}
		}
		f.Check, f.Assumption = check, a
		list = append(list, f)
	}
	return list
}

// Say writes a line of progress, with the time since the begin.
func (r *Record) Say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.progress, "%7.1f s  %-9s  %s\n", time.Since(r.begun).Seconds(), r.check, fmt.Sprintf(format, args...))
}

// sayEvery is between two lines of progress of one wait.
const sayEvery = 10 * time.Second

// Await looks until ok, with a pause of every between two looks, and returns how long that took and whether it came within the limit.
func (r *Record) Await(
	ctx context.Context, every, limit time.Duration, what string, ok func() (bool, error),
) (took time.Duration, came bool, err error) {
	begun := time.Now()
	said := begun
	for {
		come, err := ok()
		took = time.Since(begun)
		if err != nil || come || took >= limit {
			return took, come, err
		}
		if time.Since(said) >= sayEvery {
			said = time.Now()
			r.Say("waiting for %s (%s of %s)", what, Seconds(took), Seconds(limit))
		}
		if err := retry.Sleep(ctx, min(every, limit-took)); err != nil {
			return took, false, err
		}
	}
}

// UnlessCame is the error of a wait for something that everything after it needs.
func UnlessCame(took time.Duration, came bool, err error, what string) error {
	if err == nil && !came {
		err = fmt.Errorf("waited %s for %s without success", Seconds(took), what)
	}
	return err
}

// Seconds is a time for people.
func Seconds(d time.Duration) string {
	if d >= 2*time.Minute {
		return fmt.Sprintf("%.1f min", d.Minutes())
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}
