package runner

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
)

const (
	connectTime   = 10 * time.Second // to open the first session; then exit 2, so that its supervisor starts it again
	reconnectTime = 5 * time.Minute  // without a job, to find a server that went away; then exit 2
	closeTime     = 30 * time.Second // to close the session; the stop of the listener waits for it (BrokerMessageListener.cs 249)

	// How often and how long a listener tries to get a session that another one has, where the server says nothing else.
	usualConflictPause = 30 * time.Second
	usualConflictLimit = 4 * time.Minute
)

// connect opens the session. With its error comes the exit code that it stands for.
func (l *listener) connect(ctx context.Context) (int, error) {
	var s protocol.Session
	open := func() error {
		return insist(ctx, connectTime, func() error {
			_, err := l.client.call(ctx, callTime, http.MethodPost, protocol.PathSession, nil, nil, &s)
			return err
		})
	}
	err := l.outlast(ctx, open)
	switch code := codeOf(err); {
	case err == nil:
	case code == http.StatusConflict:
		return exitSessionConflict, message("Failed to create session. " + err.Error())
	case code == http.StatusUnauthorized:
		return exitTerminatedError, message("Failed to create a session. The runner registration has been deleted from the server, please re-configure. Runner registrations are automatically deleted for runners that have not connected to the service recently.")
	case passing(err):
		return exitRetryableError, fmt.Errorf("%s: Runner connect error: %w", now(), err)
	default:
		return exitTerminatedError, message("Failed to create session. " + err.Error())
	}
	version := versionOf(l.root)
	l.session = url.Values{"session": {s.ID}, "runnerVersion": {version}, "disableUpdate": {strconv.FormatBool(l.settings.DisableUpdate)}}
	fmt.Fprintf(l.out, "\n√ Connected to GitHub\n\nCurrent runner version: '%s'\n%s: Listening for Jobs\n", version, now())
	return exitSuccess, nil
}

// outlast repeats open while another listener has the session. As in actions/runner, the first refusal is not counted, and the
// pauses are counted without the time that the calls take (2.336, src/Runner.Listener/BrokerMessageListener.cs 472-491).
func (l *listener) outlast(ctx context.Context, open func() error) error {
	pause, limit := cmp.Or(l.settings.Times.ConflictPause, usualConflictPause), cmp.Or(l.settings.Times.ConflictLimit, usualConflictLimit)
	err := open()
	for refused := time.Duration(1); codeOf(err) == http.StatusConflict; refused++ {
		fmt.Fprintln(l.errOut, "A session for this runner already exists.")
		if refused == 1 {
			fmt.Fprintf(l.errOut, "%s: Runner connect error: %v. Retrying until reconnected.\n", now(), err)
		} else if refused*pause >= limit {
			fmt.Fprintf(l.errOut, "Stop retry on SessionConflictException after retried for %v seconds.\n", limit.Seconds())
			return err
		}
		select {
		case <-time.After(pause):
			err = open()
		case <-ctx.Done():
			return err
		}
	}
	return err
}

// pollLoop hands on messages until ctx ends or the server will not have it any more.
func (l *listener) pollLoop(ctx context.Context, messages chan<- protocol.Message) error {
	for ctx.Err() == nil {
		var m protocol.Message
		var got bool
		broken := false
		err := insist(ctx, reconnectTime, func() (err error) {
			got, err = l.client.call(ctx, pollTime, http.MethodGet, protocol.PathMessages, l.session, nil, &m)
			if passing(err) && !broken && ctx.Err() == nil {
				broken = true
				fmt.Fprintf(l.errOut, "%s: Runner connect error: %v. Retrying until reconnected.\n", now(), err)
			}
			return err
		})
		if err != nil {
			return err
		}
		if broken {
			fmt.Fprintf(l.out, "%s: Runner reconnected.\n", now())
		}
		if !got {
			continue
		}
		select {
		case messages <- m:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// closeSession is a courtesy: a session that is not closed ends when its poll does.
func (l *listener) closeSession() {
	_, err := l.client.call(context.Background(), closeTime, http.MethodDelete, protocol.PathSession, l.session, nil, nil)
	if code := codeOf(err); err != nil && code != http.StatusUnauthorized && code != http.StatusConflict {
		fmt.Fprintf(l.errOut, "%s: Cannot close the session: %v\n", now(), err)
	}
}
