package waiting

import (
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/pause"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
)

// RequestFacts are what is known about an open request.
type RequestFacts struct {
	Request lifecycle.Request
	// Pause is that of its pool.
	Pause pause.Pause
	// AwaySince is since when GitHub does not answer; zero: it does.
	AwaySince time.Time
}

// WhyRequest answers why an open request does not have its hosts yet.
func WhyRequest(f RequestFacts) Answer {
	q := f.Request
	until := fmt.Sprintf("until %s", q.Deadline.UTC().Format("15:04:05Z"))
	switch {
	case q.Missing() > 0 && f.Pause.On():
		return answer(lifecycle.Because(lifecycle.ReasonPoolPaused, "%s", f.Pause), "It gets hosts once the pool is resumed, and waits "+until+".").since(f.Pause.Since)
	case q.Missing() > 0 && q.QuotaReason != "":
		return answer(lifecycle.Because(lifecycle.ReasonQuota, "%s", q.QuotaReason), "It gets hosts once there is room, and waits "+until+".").since(q.QuotaSince)
	case q.Missing() > 0 && q.Shortage != "":
		return answer(lifecycle.Because(lifecycle.ReasonShortage, "the last launch was short: %s", q.Shortage), "The launch is tried again "+until+".").since(q.ShortSince)
	case !f.AwaySince.IsZero():
		return answer(lifecycle.Because(lifecycle.ReasonGitHubUnavailable, "GitHub does not answer, so no host can register"), "Its hosts register when GitHub answers again; it waits "+until+".").since(f.AwaySince)
	case q.Missing() > 0:
		return answer(lifecycle.Because(lifecycle.ReasonRequestOpen, "%d of %s taken", len(q.Taken), plural.Of(q.Spec.Count, "host is", "hosts are")), "The others are taken from the pool or launched "+until+".")
	}
	if q.Spec.Count == 1 {
		return answer(lifecycle.Because(lifecycle.ReasonWaitingForRegistration, "its host is taken, and boots or registers"), "It is complete when the host is ready, and waits "+until+".")
	}
	return answer(lifecycle.Because(lifecycle.ReasonWaitingForRegistration, "all %d hosts are taken, and some boot or register", q.Spec.Count), "It is complete when all are ready, and waits "+until+".")
}
