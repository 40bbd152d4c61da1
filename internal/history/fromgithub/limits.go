package fromgithub

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	api "github.com/google/go-github/v62/github"
)

// call makes a call of the API, and returns the number of the next page; 0: there is none. It waits while GitHub's limits are reached, and
// before they are: others use the same token. What fails for a reason that passes is tried again.
func (s *Source) call(ctx context.Context, do func() (*api.Response, error)) (next int, err error) {
	wait := again
	for try := 1; ; try++ {
		resp, err := do()
		if err == nil {
			return resp.NextPage, s.spare(ctx, resp.Rate)
		}
		pause, limited := s.pause(err)
		switch {
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case limited:
			try--
		case !passes(err) || try == tries:
			return 0, forPeople(err)
		default:
			pause, wait = wait, 2*wait
			s.say("%v; trying again in %s", forPeople(err), pause)
		}
		if err := s.Sleep(ctx, pause); err != nil {
			return 0, err
		}
	}
}

// unsaid is GitHub's advice for a limit whose end it does not name, or names wrongly, and longest how long one may last: it counts by the hour.
const unsaid, longest = time.Minute, time.Hour

// pause is how long a limit lasts that an error speaks of; false: it speaks of none.
func (s *Source) pause(err error) (time.Duration, bool) {
	var hourly *api.RateLimitError
	var secondary *api.AbuseRateLimitError
	var refused *api.ErrorResponse
	wait := time.Duration(0)
	switch {
	case errors.As(err, &hourly):
		return s.until(hourly.Rate.Reset.Time), true
	case errors.As(err, &secondary):
		if secondary.RetryAfter != nil {
			wait = *secondary.RetryAfter
		}
	case errors.As(err, &refused):
		after := refused.Response.Header.Get("Retry-After")
		status := refused.Response.StatusCode
		if status != http.StatusTooManyRequests && (status != http.StatusForbidden || after == "") {
			return 0, false
		}
		seconds, _ := strconv.Atoi(after) // not a number: it names no end
		wait = time.Duration(min(seconds, int(longest/time.Second))) * time.Second
	default:
		return 0, false
	}
	if wait <= 0 {
		wait = unsaid
	}
	wait = min(wait, longest)
	s.say("GitHub asks to wait for %s", wait.Round(time.Second))
	return wait, true
}

// spare waits for the next hour of calls when few are left of this one.
func (s *Source) spare(ctx context.Context, rate api.Rate) error {
	if rate.Limit <= reserve || rate.Remaining > reserve || !rate.Reset.After(s.Now()) {
		return nil
	}
	return s.Sleep(ctx, s.until(rate.Reset.Time))
}

// until is how long to wait for a time at which a limit ends.
func (s *Source) until(end time.Time) time.Duration {
	wait := min(max(0, end.Sub(s.Now())), longest) + slack
	s.say("GitHub's limit on calls is reached: waiting for %s, until %s", wait.Round(time.Second), s.Now().Add(wait).UTC().Format(time.TimeOnly))
	return wait
}

// passes reports whether a call may succeed when it is made again: GitHub fails, or did not answer.
func passes(err error) bool {
	status := statusOf(err)
	return !isRefusal(err) && (status == 0 || status >= http.StatusInternalServerError)
}
