package github

import (
	"cmp"
	"context"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/remuda-ci/remuda/internal/retry"
)

const (
	// assumedLimit is how many calls an hour a credential has until GitHub says: the least that an App's
	// installation or a token gets (docs.github.com, rate limits for the REST API).
	assumedLimit = 5000
	// keptShare is the part of the limit, one in so many, that is kept for
	// registrations: 500 calls of 5,000 bring up some hundred hosts.
	keptShare = 10
	// maxRest bounds a Retry-After: GitHub's windows are an hour.
	maxRest = time.Hour
	// maxWindow bounds how far ahead a reset is believed to be: that hour, by a clock that is off by another.
	maxWindow = 2 * time.Hour
	// maxWindows bounds how many resources a credential has windows of. GitHub documents about a dozen.
	maxWindows = 32
)

// Budget is what GitHub lets a credential do, as it said last.
type Budget struct {
	// Credential is a name for people, such as "App 12345, installation 678". For a limit beside that of most
	// calls it ends with the name of the limit, such as ", actions_runner_registration".
	Credential string
	// Limit is calls an hour, and Remaining how many are left until ResetAt.
	// Credentials whose limit GitHub has not stated yet are left out.
	Limit, Remaining int
	ResetAt          time.Time
}

// The resources that GitHub counts calls against, as X-RateLimit-Resource names them. Any other that it names
// gets a window too.
const (
	coreCalls         = "core"
	registrationCalls = "actions_runner_registration"
)

// kind tells calls apart that may count against different resources.
type kind string

const (
	ordinary kind = ""    // counts against coreCalls
	jitCalls kind = "jit" // counts against registrationCalls, until GitHub says otherwise
)

// kindKey is where the context of a call has its kind.
type kindKey struct{}

func kindOf(ctx context.Context) kind {
	k, _ := ctx.Value(kindKey{}).(kind)
	return k
}

// budget is what a credential may do.
type budget struct {
	mu        sync.Mutex
	windows   map[string]*window // by resource
	resources map[kind]string    // what GitHub said that calls of a kind count against
	restUntil time.Time          // by Retry-After
	inFlight  int
}

// window is what is left of one resource.
type window struct {
	limit, remaining int // limit 0: GitHub has not said, or sets none
	resetAt          time.Time
}

// of is the window of a kind of calls. The caller holds the lock.
func (b *budget) of(k kind) window {
	resource := coreCalls
	if k == jitCalls {
		resource = cmp.Or(b.resources[k], registrationCalls)
	}
	if w := b.windows[resource]; w != nil {
		return *w
	}
	return window{}
}

// restError says why a call of a credential was not made, or was refused for
// now by GitHub, and when to try again.
type restError struct {
	why  string
	wait time.Duration
	// status is GitHub's; 0: the call was not made.
	status int
}

func (e *restError) Error() string { return e.why }

// admit tells why a call must not be made now; nil: it may.
func (b *budget) admit(l lane, k kind, now time.Time) *restError {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.of(k)
	known := w.limit > 0 && w.resetAt.After(now)
	switch {
	case b.restUntil.After(now):
		return &restError{why: "GitHub asked for a rest", wait: b.restUntil.Sub(now)}
	case known && w.remaining == 0:
		return &restError{why: primaryLimit, wait: w.resetAt.Sub(now)}
	case known && l == housekeeping && w.remaining < w.limit/keptShare:
		return &restError{why: "what is left of GitHub's rate limit is kept for registrations", wait: w.resetAt.Sub(now)}
	}
	return nil
}

// left estimates how many calls of a kind the credential can make yet.
func (b *budget) left(k kind, now time.Time) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.of(k)
	switch {
	case b.restUntil.After(now):
		return -1
	case w.limit == 0 && b.inFlight == 0:
		return math.MaxInt // one call tells
	case w.limit == 0 || !w.resetAt.After(now):
		return cmp.Or(w.limit, assumedLimit) - b.inFlight
	}
	return w.remaining - b.inFlight
}

// begin and end count the calls under way.
func (b *budget) begin() { b.count(1) }
func (b *budget) end()   { b.count(-1) }

func (b *budget) count(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inFlight += n
}

// observe learns from the answer to a call of a kind. Answers overtake each other, so within a window the least counts.
func (b *budget) observe(h http.Header, k kind, now time.Time) {
	limit, err := strconv.Atoi(h.Get("X-RateLimit-Limit"))
	remaining, err2 := strconv.Atoi(h.Get("X-RateLimit-Remaining"))
	reset, err3 := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64)
	if err != nil || err2 != nil || err3 != nil || limit <= 0 || remaining < 0 {
		return // an Enterprise Server may have no limits
	}
	at := time.Unix(reset, 0)
	if latest := now.Add(maxWindow); at.After(latest) {
		at = latest
	}
	resource := cmp.Or(h.Get("X-RateLimit-Resource"), coreCalls)
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.windows[resource]
	switch {
	case w == nil && len(b.windows) >= maxWindows:
		return
	case w == nil:
		if b.windows == nil {
			b.windows, b.resources = map[string]*window{}, map[kind]string{}
		}
		w = &window{}
		b.windows[resource] = w
	case at.Before(w.resetAt):
		return // an answer of the window before
	case at.Equal(w.resetAt):
		remaining = min(remaining, w.remaining)
	}
	b.resources[k] = resource
	*w = window{limit, remaining, at}
}

// rest keeps the credential from calling for a while.
func (b *budget) rest(wait time.Duration, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if until := now.Add(wait); until.After(b.restUntil) {
		b.restUntil = until
	}
}

// told are the windows for people, that of most calls first; none while GitHub has said nothing.
func (b *budget) told(credential string) []Budget {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []Budget
	for _, resource := range slices.Sorted(maps.Keys(b.windows)) {
		w := b.windows[resource]
		if resource == coreCalls {
			all = slices.Insert(all, 0, Budget{credential, w.limit, w.remaining, w.resetAt})
			continue
		}
		all = append(all, Budget{credential + ", " + resource, w.limit, w.remaining, w.resetAt})
	}
	return all
}

// GitHub's secondary limits, by docs.github.com (rate limits for the REST API) and what its staff says of
// registrations (actions/runner#1339): 10,000 registrations an hour; 900 points a minute for one endpoint, at
// 5 a write, which is 180 writes; 80 writes a minute that make content; 100 calls at once. All of them hold
// for a token or an App. A bucket lets through what it holds at once and then its rate, so that no minute has
// more than their sum. Each replica has buckets of its own, of the size that its share of the limits is while as many
// replicas live as are counted. A replica that is not counted yet may make all of them too fast for minutes; then what
// GitHub says is left of actions_runner_registration reaches zero, and all of them stop until it is reset.
const (
	// 150 a minute and 16 at once: at most 166 in any minute, and 9,016 an hour.
	registrationsPerMinute = 150
	registrationsAtOnce    = 16
	// Deletions and tokens create no content as far as GitHub documents it. They stay
	// below the limit for content anyway: at most 80 in any minute.
	writesPerMinute = 70
	writesAtOnce    = 10
	// callsOfAll is how many calls GitHub allows at once, and callsAtOnce how many a replica makes at most: one that
	// is alone leaves half to others that it does not know of.
	callsOfAll  = 100
	callsAtOnce = callsOfAll / 2
	// labelsInFlight is how many of these may be for labels: they come in bursts, and others must not wait for them if GitHub
	// does not answer them.
	labelsInFlight = callsAtOnce / 2
	// 80 a minute and 60 at once: at most 140 labels in any minute, which are 700 points. The reads that find these runners
	// stay below 900 with them, should GitHub count both together. Most go at once, because a run waits for each.
	labelsPerMinute = 80
	labelsAtOnce    = 60
	// maxPause is how long a call may wait for its turn. It is half of what a call may take at all.
	maxPause = callTimeout / 2
)

// pace is which bucket a call draws from.
type pace int

const (
	reads pace = iota // reads are bounded by the budget alone
	writes
	registrations
	labelWrites
)

// share is what a bucket has for one replica.
type share struct {
	perMinute, atOnce int
}

var shares = map[pace]share{
	writes:        {writesPerMinute, writesAtOnce},
	registrations: {registrationsPerMinute, registrationsAtOnce},
	labelWrites:   {labelsPerMinute, labelsAtOnce},
}

// pacer spreads the calls of a credential.
type pacer struct {
	replicas func() int
	buckets  map[pace]*rate.Limiter
	slots    places
	labels   places // for calls for labels, beside a slot

	mu     sync.Mutex
	shared int // by how many replicas the buckets are divided
}

// places are for calls that are made at once.
type places struct {
	taken chan struct{}
	kept  int // those that no call may take
}

func newPlaces(n int) places { return places{taken: make(chan struct{}, n)} }

// offer lets calls take so many. Places in use are kept from them as they get free.
func (p *places) offer(n int) {
	keep := max(0, cap(p.taken)-n)
	for ; p.kept > keep; p.kept-- {
		<-p.taken
	}
	for p.kept < keep {
		select {
		case p.taken <- struct{}{}:
			p.kept++
		default:
			return
		}
	}
}

func (p *places) take(ctx context.Context) error {
	select {
	case p.taken <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *places) giveBack() { <-p.taken }

func newPacer(replicas func() int) *pacer {
	p := &pacer{replicas: replicas, buckets: map[pace]*rate.Limiter{}, slots: newPlaces(callsAtOnce), labels: newPlaces(labelsInFlight), shared: 1}
	for of, s := range shares {
		p.buckets[of] = rate.NewLimiter(rate.Limit(s.perMinute)/60, s.atOnce)
	}
	return p
}

// divide gives the buckets and the places the sizes of this replica's share.
func (p *pacer) divide() {
	n := p.replicas()
	p.mu.Lock()
	defer p.mu.Unlock()
	if n != p.shared {
		p.shared = n
		for of, s := range shares {
			p.buckets[of].SetLimit(rate.Limit(s.perMinute) / 60 / rate.Limit(n))
			p.buckets[of].SetBurst(max(1, s.atOnce/n))
		}
	}
	slots := min(callsAtOnce, max(1, callsOfAll/n))
	p.slots.offer(slots)
	p.labels.offer(max(1, slots/2))
}

// turn reserves the next turn of a bucket, or none if it is too far ahead. A turn that is taken and given back costs those after it
// theirs (rate.Reservation.Cancel), so hundreds of calls that come at once would stop the bucket for a minute.
func (p *pacer) turn(bucket *rate.Limiter) (*rate.Reservation, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if wait := time.Duration((1 - bucket.TokensAt(now)) / float64(bucket.Limit()) * float64(time.Second)); wait > maxPause {
		return nil, wait
	}
	turn := bucket.ReserveN(now, 1)
	return turn, turn.DelayFrom(now)
}

// enter waits for a call's turn and takes a slot, which leave gives back.
func (p *pacer) enter(ctx context.Context, of pace) error {
	p.divide()
	if bucket := p.buckets[of]; bucket != nil {
		turn, wait := p.turn(bucket)
		if turn == nil {
			return &restError{why: "calls are spread to stay within GitHub's secondary rate limits", wait: wait}
		}
		if retry.Sleep(ctx, wait) != nil {
			turn.Cancel()
			return ctx.Err()
		}
	}
	if of == labelWrites {
		if err := p.labels.take(ctx); err != nil {
			return err
		}
	}
	err := p.slots.take(ctx)
	if err != nil && of == labelWrites {
		p.labels.giveBack()
	}
	return err
}

func (p *pacer) leave(of pace) {
	p.slots.giveBack()
	if of == labelWrites {
		p.labels.giveBack()
	}
}

const (
	// breakAfter calls in a row without an answer that is GitHub's, it is taken
	// to be down. Fewer would let one bad minute of a proxy stop everything.
	breakAfter = 10
	// probeEvery is how often one call is let through while GitHub is down. It
	// is how much later than GitHub the fleet comes back, at most.
	probeEvery = 5 * time.Second
)

// breaker keeps the many from calling while GitHub is down: they would wait for
// nothing, and GitHub would be slower to come back.
type breaker struct {
	mu       sync.Mutex
	failures int
	until    time.Time
}

// admit tells why a call must not be made now; nil: it may.
func (b *breaker) admit(now time.Time) *restError {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < breakAfter {
		return nil
	}
	if b.until.After(now) {
		return &restError{why: "GitHub is down: it has not answered the last calls", wait: b.until.Sub(now)}
	}
	b.until = now.Add(probeEvery) // this call is the probe
	return nil
}

// doubtful reports whether the last call was not answered.
func (b *breaker) doubtful() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failures > 0
}

// answered and failed say how a call ended.
func (b *breaker) answered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures, b.until = 0, time.Time{}
}

func (b *breaker) failed(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures++
	b.until = now.Add(probeEvery)
}
