package aws_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

var (
	throttled = errorOf("dynamodb", 400, "ThrottlingException", "Rate exceeded")
	fault     = errorOf("dynamodb", 500, "InternalServerError", "")
	lostRace  = errorOf("dynamodb", 400, "ConditionalCheckFailedException", "")
	broken    = answer{} // the connection breaks
)

func times(n int, a answer) []answer {
	answers := make([]answer, n)
	for i := range answers {
		answers[i] = a
	}
	return answers
}

func TestRetries(t *testing.T) {
	half := func() float64 { return 0.5 }
	tests := map[string]struct {
		answers []answer
		options aws.RetryOptions
		tries   int
		waited  time.Duration
		is      error
	}{
		"a good answer":      {nil, aws.RetryOptions{Random: half}, 1, 0, nil},
		"one fault":          {times(1, fault), aws.RetryOptions{Random: half}, 2, 25 * time.Millisecond, nil},
		"a broken line":      {times(1, broken), aws.RetryOptions{Random: half}, 2, 25 * time.Millisecond, nil},
		"throttled":          {times(4, throttled), aws.RetryOptions{Random: half}, 5, (25 + 50 + 100 + 200) * time.Millisecond, nil},
		"throttled for long": {times(9, throttled), aws.RetryOptions{Random: half}, 5, (25 + 50 + 100 + 200) * time.Millisecond, lifecycle.ErrUnavailable},
		"the cap, with jitter": {
			times(9, fault), aws.RetryOptions{Tries: 9, FirstWait: 100 * time.Millisecond, LongestWait: 300 * time.Millisecond, Random: half},
			9, (50 + 100 + 6*150) * time.Millisecond, lifecycle.ErrUnavailable,
		},
		"the longest waits": {
			times(40, fault), aws.RetryOptions{Tries: 40, Random: func() float64 { return 1 }},
			40, (50+100+200+400+800+1600)*time.Millisecond + 33*2*time.Second, lifecycle.ErrUnavailable,
		},
		"no waits": {times(9, fault), aws.RetryOptions{Tries: 3, Random: func() float64 { return 0 }}, 3, 0, lifecycle.ErrUnavailable},
		"lost":     {times(1, lostRace), aws.RetryOptions{}, 1, 0, lifecycle.ErrConflict},
		"denied":   {times(1, errorOf("dynamodb", 400, "AccessDeniedException", "")), aws.RetryOptions{}, 1, 0, lifecycle.ErrRefused},
		"an unknown fault of ours": {
			times(1, errorOf("dynamodb", 400, "Novelty", "")), aws.RetryOptions{}, 1, 0, lifecycle.ErrRefused,
		},
		"too many calls, in a new word": {times(1, errorOf("dynamodb", 429, "Novelty", "")), aws.RetryOptions{Random: half}, 2, 25 * time.Millisecond, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := load(t, aws.Options{Retryer: aws.NewRetryer(test.options)})
			synctest.Test(t, func(t *testing.T) {
				line := &transport{answers: test.answers}
				c.HTTPClient = line
				began := time.Now()
				err := calls["dynamodb:PutItem"](t.Context(), c)
				if line.tries != test.tries || time.Since(began) != test.waited {
					t.Errorf("%d tries in %v, want %d in %v", line.tries, time.Since(began), test.tries, test.waited)
				}
				switch {
				case test.is == nil && err != nil:
					t.Errorf("error %v", err)
				case test.is != nil:
					wantIs(t, aws.Wrap("do it", err), test.is)
				}
			})
		})
	}
}

// TestFullJitter: at the cap, too, a wait may be anything up to it.
func TestFullJitter(t *testing.T) {
	const longest = 2 * time.Second
	c := aws.NewRetryer(aws.RetryOptions{})
	for _, try := range []int{1, 3, 7, 200} {
		limit := min(50*time.Millisecond<<min(try-1, 20), longest)
		quarters := map[time.Duration]bool{}
		for range 300 {
			wait, err := c.RetryDelay(try, errors.New("fault"))
			if err != nil || wait < 0 || wait >= limit {
				t.Fatalf("after try %d: wait %v, error %v, want less than %v", try, wait, err, limit)
			}
			quarters[4*wait/limit] = true
		}
		if len(quarters) != 4 {
			t.Errorf("after try %d: the waits fall into the quarters %v only", try, quarters)
		}
	}
	if wait, err := c.RetryDelay(0, nil); err != nil || wait < 0 {
		t.Errorf("before the first try: %v, %v", wait, err)
	}
}

// TestBudget: while nothing goes well, there are only so many repetitions.
func TestBudget(t *testing.T) {
	c := load(t, aws.Options{Retryer: aws.NewRetryer(aws.RetryOptions{Tries: 5})})
	synctest.Test(t, func(t *testing.T) {
		const callers = 200
		line := &transport{answers: times(callers*5, fault)}
		c.HTTPClient = line
		for range callers {
			wantIs(t, aws.Wrap("do it", calls["dynamodb:PutItem"](t.Context(), c)), lifecycle.ErrUnavailable)
		}
		// The SDK's budget is 500, and a repetition costs 5 of it.
		if want := callers + 500/5; line.tries != want {
			t.Errorf("%d tries of %d calls, want %d", line.tries, callers, want)
		}
		last := line.tries
		wantIs(t, aws.Wrap("do it", calls["dynamodb:PutItem"](t.Context(), c)), lifecycle.ErrUnavailable)
		if line.tries != last+1 {
			t.Errorf("%d tries without a budget, want 1", line.tries-last)
		}
	})
}

// TestBudgetOfEachClient: the budget of one is not that of the other.
func TestBudgetOfEachClient(t *testing.T) {
	c := load(t, aws.Options{})
	if one, other := c.Retryer(), c.Retryer(); one == other {
		t.Error("two clients share a retryer")
	}
}

// TestWrongClock: the SDK sets its clock by the answer and tries again.
func TestWrongClock(t *testing.T) {
	c := load(t, aws.Options{Retryer: aws.NewRetryer(aws.RetryOptions{})})
	synctest.Test(t, func(t *testing.T) {
		skewed := errorOf("dynamodb", 400, "InvalidSignatureException", "Signature expired")
		skewed.header = map[string]string{"Date": time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)}
		line := &transport{answers: []answer{skewed}}
		c.HTTPClient = line
		if err := calls["dynamodb:PutItem"](t.Context(), c); err != nil || line.tries != 2 {
			t.Errorf("%d tries, error %v, want 2 and none", line.tries, err)
		}
	})
}

// TestCallerGoes: a wait ends with the caller's context.
func TestCallerGoes(t *testing.T) {
	c := load(t, aws.Options{Retryer: aws.NewRetryer(aws.RetryOptions{Random: func() float64 { return 1 }})})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 120*time.Millisecond)
		defer cancel()
		line := &transport{answers: times(5, fault)}
		c.HTTPClient = line
		began := time.Now()
		err := aws.Wrap("do it", calls["dynamodb:PutItem"](ctx, c))
		wantIs(t, err, lifecycle.ErrUnavailable)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 120*time.Millisecond || line.tries != 2 {
			t.Errorf("error %v after %d tries in %v", err, line.tries, time.Since(began))
		}
	})
}

func TestCalls(t *testing.T) {
	var counted aws.Calls
	var told []string
	counted.Sent = func(call aws.Call) { told = append(told, call.String()) }
	c := load(t, aws.Options{Calls: &counted, Retryer: aws.NewRetryer(aws.RetryOptions{})})
	synctest.Test(t, func(t *testing.T) {
		c.HTTPClient = &transport{answers: times(2, fault)}
		for _, call := range []string{"dynamodb:PutItem", "sqs:DeleteMessageBatch", "dynamodb:PutItem"} {
			if err := calls[call](t.Context(), c); err != nil {
				t.Fatalf("%s: %v", call, err)
			}
		}
	})
	want := map[aws.Call]int{{Service: "dynamodb", Operation: "PutItem"}: 4, {Service: "sqs", Operation: "DeleteMessageBatch"}: 1}
	if diff := cmp.Diff(want, counted.Counts()); diff != "" {
		t.Errorf("each try counts (-want +got):\n%s", diff)
	}
	if counted.Total() != 5 {
		t.Errorf("total %d, want 5", counted.Total())
	}
	wantTold := []string{"dynamodb:PutItem", "dynamodb:PutItem", "dynamodb:PutItem", "sqs:DeleteMessageBatch", "dynamodb:PutItem"}
	if diff := cmp.Diff(wantTold, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

func TestLoad(t *testing.T) {
	t.Run("no region", func(t *testing.T) {
		bareEnvironment(t)
		_, err := aws.Load(t.Context(), aws.Options{})
		const want = "set up the AWS SDK: no region: write it in the configuration or set AWS_REGION"
		var region *aws.RegionError
		if !errors.As(err, &region) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
	for _, name := range []string{"eu west", "eu-west-1.", "https://x", "eu_west"} {
		t.Run(fmt.Sprintf("region %q", name), func(t *testing.T) {
			bareEnvironment(t)
			_, err := aws.Load(t.Context(), aws.Options{Region: name})
			want := fmt.Sprintf("set up the AWS SDK: %q is no region: write one such as eu-west-1 in the configuration or AWS_REGION", name)
			if err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
	t.Run("the environment", func(t *testing.T) {
		bareEnvironment(t)
		t.Setenv("AWS_REGION", "us-gov-west-1")
		t.Setenv("AWS_ENDPOINT_URL", serve(t, good))
		t.Setenv("AWS_ACCESS_KEY_ID", "AKIDTEST")
		t.Setenv("AWS_SECRET_ACCESS_KEY", secretKey)
		c, err := aws.Load(t.Context(), aws.Options{Program: "remuda-controld"})
		if err != nil {
			t.Fatal(err)
		}
		if c.Region != "us-gov-west-1" || c.AppID != "remuda-controld" {
			t.Errorf("region %q, application %q", c.Region, c.AppID)
		}
		if err := calls["dynamodb:PutItem"](t.Context(), c); err != nil {
			t.Errorf("call at AWS_ENDPOINT_URL: %v", err)
		}
	})
	t.Run("a broken file", func(t *testing.T) {
		bareEnvironment(t)
		t.Setenv("AWS_PROFILE", "no-such-profile")
		if _, err := aws.Load(t.Context(), aws.Options{Region: "eu-west-1"}); err == nil {
			t.Error("no error with a profile that does not exist")
		}
	})
}

var _ sdk.HTTPClient = (*transport)(nil)
