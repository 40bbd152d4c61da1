package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	api "github.com/google/go-github/v62/github"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/delivery"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// maxDeliveryPages bounds how far back one look at the deliveries of all outcomes goes: 3,000 deliveries of an
// App, which is some minutes of a fleet that runs 10,000 jobs an hour.
const maxDeliveryPages = 30

// maxFailedPages bounds a look at the failed deliveries alone, which are few: 30,000 of them.
const maxFailedPages = 300

// failedDeliveries is the value of the query parameter status by which GitHub lists only the deliveries that
// were answered with a code from 400 to 599. Those that got no answer are not among them.
const failedDeliveries = "failure"

// MissedDeliveries lists the deliveries since a time that GitHub could not hand over, the oldest first: those
// of the webhook of each App, of all events. Those that failed with a status code are
// listed among the newest 30,000 of their kind; others, such as those that timed out, among the newest 3,000 of all.
// With a personal access token, or when no App has a webhook, there are none to be asked for: lifecycle.ErrNotFound.
func (c *Client) MissedDeliveries(ctx context.Context, since time.Time) ([]delivery.Missed, error) {
	var missed []delivery.Missed
	asked := false
	for _, a := range c.apps {
		deliveries, err := a.deliveries(ctx, since)
		switch {
		case hasStatus(err, http.StatusNotFound):
			continue // it has no webhook
		case err != nil:
			return nil, err
		}
		asked = true
		missed = append(missed, missedOf(deliveries)...)
	}
	if !asked {
		return nil, fmt.Errorf("list missed deliveries: no App with a webhook: %w", lifecycle.ErrNotFound)
	}
	slices.SortFunc(missed, func(a, b delivery.Missed) int {
		return cmp.Or(a.DeliveredAt.Compare(b.DeliveredAt), cmp.Compare(a.ID, b.ID))
	})
	return missed, nil
}

// deliveries lists an App's since a time, the newest first: first the failed ones, since the others may be
// too many to be listed back to that time.
func (a *app) deliveries(ctx context.Context, since time.Time) ([]*api.HookDelivery, error) {
	failed, _, err := a.listDeliveries(ctx, since, failedDeliveries)
	if err != nil {
		return nil, err
	}
	all, whole, err := a.listDeliveries(ctx, since, "")
	if err != nil {
		return nil, err
	}
	if !whole {
		a.client.log.Warn("not all deliveries were searched for ones that got no answer", logkey.App, a.name, logkey.Searched, len(all), logkey.Since, since)
	}
	all = append(all, failed...)
	slices.SortStableFunc(all, func(a, b *api.HookDelivery) int {
		return cmp.Or(b.GetDeliveredAt().Compare(a.GetDeliveredAt().Time), cmp.Compare(b.GetID(), a.GetID()))
	})
	return all, nil
}

// listDeliveries lists an App's deliveries of a status since a time, the newest first as GitHub gives them, and
// reports whether these are all.
func (a *app) listDeliveries(ctx context.Context, since time.Time, status string) (all []*api.HookDelivery, whole bool, err error) {
	cursor, most := "", maxDeliveryPages
	if status != "" {
		most = maxFailedPages
	}
	for range most {
		list, next, err := a.deliveryPage(ctx, status, cursor)
		if err != nil {
			return nil, false, err
		}
		for _, d := range list {
			switch {
			case d.GetDeliveredAt().Before(since):
				return all, true, nil
			case status != "" && (d.GetStatusCode() < 400 || d.GetStatusCode() > 599):
				return all, false, nil // an old Enterprise Server, which lists deliveries of all outcomes
			}
			all = append(all, d)
		}
		if next == "" || next == cursor {
			return all, true, nil
		}
		cursor = next
	}
	return all, false, nil
}

// deliveryPage reads one page of an App's deliveries and the cursor of the next. The client library has no field
// for the status.
func (a *app) deliveryPage(ctx context.Context, status, cursor string) (list []*api.HookDelivery, next string, err error) {
	op := operation{what: "list deliveries of " + a.name, lane: housekeeping, as: a.asItself}
	query := url.Values{"per_page": {strconv.Itoa(maxPerPage)}}
	if status != "" {
		query.Set("status", status)
	}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	list, err = fetch(ctx, a.client, op, func(ctx context.Context, as *api.Client) (list []*api.HookDelivery, _ *api.Response, err error) {
		request, err := as.NewRequest(http.MethodGet, "app/hook/deliveries?"+query.Encode(), nil)
		if err != nil {
			return nil, nil, err
		}
		response, err := as.Do(ctx, request, &list)
		if response != nil {
			next = response.Cursor
		}
		return list, response, err
	})
	return list, next, err
}

// missedOf leaves out what was handed over, at once or when it was sent again.
func missedOf(deliveries []*api.HookDelivery) []delivery.Missed {
	first := map[string]*api.HookDelivery{}
	over := map[string]bool{}
	for _, d := range deliveries { // the newest first, so that the first attempt stays
		first[d.GetGUID()] = d
		over[d.GetGUID()] = over[d.GetGUID()] || (d.GetStatusCode() >= 200 && d.GetStatusCode() < 300)
	}
	var missed []delivery.Missed
	for guid, d := range first {
		if guid != "" && !over[guid] {
			missed = append(missed, delivery.Missed{
				ID: d.GetID(), DeliveryID: guid, Event: d.GetEvent(), DeliveredAt: d.GetDeliveredAt().UTC()})
		}
	}
	return missed
}

// DeliveryPayload is the body of a missed delivery: lifecycle.ErrNotFound if no
// App's webhook has it any more. GitHub keeps deliveries for some days.
func (c *Client) DeliveryPayload(ctx context.Context, d delivery.Missed) ([]byte, error) {
	what := "get delivery " + strconv.FormatInt(d.ID, 10)
	for _, a := range c.apps {
		op := operation{what: what + " of " + a.name, lane: housekeeping, as: a.asItself}
		delivery, err := fetch(ctx, c, op, func(ctx context.Context, as *api.Client) (*api.HookDelivery, *api.Response, error) {
			return as.Apps.GetHookDelivery(ctx, d.ID)
		})
		switch {
		case hasStatus(err, http.StatusNotFound):
			continue // another App's
		case err != nil:
			return nil, err
		case delivery.GetGUID() != d.DeliveryID, delivery.Request == nil, delivery.Request.RawPayload == nil:
			return nil, unavailable(op, 0, errors.New("the answer is of another delivery, or has no payload"))
		}
		return *delivery.Request.RawPayload, nil
	}
	return nil, fmt.Errorf("%s: %w", what, lifecycle.ErrNotFound)
}
