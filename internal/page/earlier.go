package page

import (
	"net/http"
	"net/url"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

const (
	// day is how far back the history goes.
	day = 24 * time.Hour
	// wayBack bounds how many pages Later leads back through, and with them the length of an address.
	wayBack = 50
)

// untilField is the field of a query with the end of the history: that of the page, and behind it those of the pages that led there.
const untilField = "until"

// untilOf is the end that a call asks for; zero: now.
func untilOf(r *http.Request) (time.Time, error) {
	text := r.URL.Query().Get(untilField)
	if text == "" {
		return time.Time{}, nil
	}
	until, err := time.Parse(time.RFC3339Nano, text)
	if err == nil {
		err = timestamppb.New(until).CheckValid()
	}
	if err != nil {
		return until, status.Error(codes.InvalidArgument, "until: "+err.Error())
	}
	return until, nil
}

// eventsOf asks for the events of a span that ends at a time, or now if that is zero. Of what is older than a day none is left.
func eventsOf(span time.Duration, until, now time.Time) *remudav1.ListEventsRequest {
	req := &remudav1.ListEventsRequest{Since: durationpb.New(span), RowLimit: mostEvents}
	if !until.IsZero() {
		req.Since, req.UntilTime = durationpb.New(min(day, max(0, now.Sub(until)+span))), timestamppb.New(until)
	}
	return req
}

// around has links lead to what was before a history that begins at a time, until the day is over, and back to what was after it.
func (v *view) around(r *http.Request, from, until, now time.Time) {
	query := r.URL.Query()
	ends := query[untilField]
	if until.IsZero() {
		ends = nil
	}
	// What else happened at the time of the oldest event may be missing, so that time comes again, unless all of this page was at it.
	end := from.Add(time.Nanosecond)
	if !until.IsZero() && !end.Before(until) {
		end = from
	}
	to := func(ends []string) string {
		q := url.Values{"span": {query.Get("span")}}
		if len(ends) > 0 {
			q[untilField] = ends[:min(len(ends), wayBack)]
		}
		return r.URL.Path + "?" + q.Encode()
	}
	if from.Sub(now.Add(-day)) > time.Minute {
		v.Earlier = to(append([]string{end.UTC().Format(time.RFC3339Nano)}, ends...))
	}
	if len(ends) > 0 {
		v.Later = to(ends[1:])
	}
}
