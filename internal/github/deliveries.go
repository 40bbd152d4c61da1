package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	api "github.com/google/go-github/v62/github"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// maxDeliveryPages bounds how far back one look goes: 3,000 deliveries of an
// App, which is some minutes of a fleet that runs 10,000 jobs an hour.
const maxDeliveryPages = 30

// MissedDeliveries lists the deliveries since a time that GitHub could not hand over, the oldest first: those
// of the webhook of each App, of all events. With a personal access token, or when no App has a webhook,
// there are none to be asked for: lifecycle.ErrNotFound.
func (c *Client) MissedDeliveries(ctx context.Context, since time.Time) ([]lifecycle.MissedDelivery, error) {
	var missed []lifecycle.MissedDelivery
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
	slices.SortFunc(missed, func(a, b lifecycle.MissedDelivery) int {
		return cmp.Or(a.DeliveredAt.Compare(b.DeliveredAt), cmp.Compare(a.ID, b.ID))
	})
	return missed, nil
}

// deliveries lists an App's since a time, the newest first as GitHub gives them.
func (a *app) deliveries(ctx context.Context, since time.Time) ([]*api.HookDelivery, error) {
	op := operation{what: "list deliveries of " + a.name, lane: housekeeping, as: a.asItself}
	options := api.ListCursorOptions{PerPage: maxPerPage}
	var all []*api.HookDelivery
	for range maxDeliveryPages {
		var next string
		list, err := fetch(ctx, a.client, op, func(ctx context.Context, as *api.Client) ([]*api.HookDelivery, *api.Response, error) {
			list, response, err := as.Apps.ListHookDeliveries(ctx, &options)
			if response != nil {
				next = response.Cursor
			}
			return list, response, err
		})
		if err != nil {
			return nil, err
		}
		for _, d := range list {
			if d.GetDeliveredAt().Before(since) {
				return all, nil
			}
			all = append(all, d)
		}
		if next == "" || next == options.Cursor {
			return all, nil
		}
		options.Cursor = next
	}
	a.client.log.Warn("not all deliveries were searched for missed ones", logkey.App, a.name, logkey.Searched, len(all), logkey.Since, since)
	return all, nil
}

// missedOf leaves out what was handed over, at once or when it was sent again.
func missedOf(deliveries []*api.HookDelivery) []lifecycle.MissedDelivery {
	first := map[string]*api.HookDelivery{}
	over := map[string]bool{}
	for _, d := range deliveries { // the newest first, so that the first attempt stays
		first[d.GetGUID()] = d
		over[d.GetGUID()] = over[d.GetGUID()] || (d.GetStatusCode() >= 200 && d.GetStatusCode() < 300)
	}
	var missed []lifecycle.MissedDelivery
	for guid, d := range first {
		if guid != "" && !over[guid] {
			missed = append(missed, lifecycle.MissedDelivery{
				ID: d.GetID(), DeliveryID: guid, Event: d.GetEvent(), DeliveredAt: d.GetDeliveredAt().UTC()})
		}
	}
	return missed
}

// DeliveryPayload is the body of a missed delivery: lifecycle.ErrNotFound if no
// App's webhook has it any more. GitHub keeps deliveries for some days.
func (c *Client) DeliveryPayload(ctx context.Context, d lifecycle.MissedDelivery) ([]byte, error) {
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
