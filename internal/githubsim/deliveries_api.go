package githubsim

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
)

// seen are the deliveries that the app of the call may see, newest first.
func (o *outbox) seen(app int64) []*delivery {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []*delivery
	for _, d := range slices.Backward(o.past) {
		if d.to.AppID == 0 || d.to.AppID == app {
			out = append(out, d)
		}
	}
	return out
}

func (o *outbox) find(r *http.Request) (*delivery, error) {
	id, err := rest.PathID(r, "id")
	if err != nil {
		return nil, err
	}
	for _, d := range o.seen(callerOf(r).app) {
		if d.id == id {
			return d, nil
		}
	}
	return nil, rest.ErrNotFound
}

// listDeliveries goes back in time from the cursor, which is the id of the last delivery of the page before.
func (s *Server) listDeliveries(r *http.Request) (*rest.Answer, error) {
	q := r.URL.Query()
	_, perPage := rest.PageOf(r)
	list := s.outbox.seen(callerOf(r).app)
	if cursor := q.Get("cursor"); cursor != "" {
		last, err := strconv.ParseInt(strings.TrimPrefix(cursor, "v1_"), 10, 64)
		if err != nil {
			return nil, rest.Problem(http.StatusBadRequest, "Invalid cursor")
		}
		list = slices.DeleteFunc(list, func(d *delivery) bool { return d.id >= last })
	}
	switch status := q.Get("status"); status {
	case "":
	case "success", "failure": // by the code, as the description has it: up to 399 and from 400
		list = slices.DeleteFunc(list, func(d *delivery) bool { return (d.outcome.code < 400) != (status == "success") })
	default:
		return nil, rest.Problem(http.StatusUnprocessableEntity, "Invalid status")
	}
	header := http.Header{}
	if len(list) > perPage {
		list = list[:perPage]
		q.Set("cursor", fmt.Sprintf("v1_%d", list[perPage-1].id))
		next := url.URL{Path: r.URL.Path, RawQuery: q.Encode()}
		header.Set("Link", fmt.Sprintf("<%s%s>; rel=%q", s.issuerURL(), next.String(), "next"))
	}
	items := []rest.Object{}
	for _, d := range list {
		items = append(items, d.item())
	}
	return &rest.Answer{Status: http.StatusOK, Header: header, Body: items}, nil
}

func (s *Server) getDelivery(r *http.Request) (*rest.Answer, error) {
	d, err := s.outbox.find(r)
	if err != nil {
		return nil, err
	}
	body, err := d.full()
	return rest.OK(body), err
}

// redeliver sends a delivery again, under its own guid and as a delivery of its own. It is never lost.
func (s *Server) redeliver(r *http.Request) (*rest.Answer, error) {
	d, err := s.outbox.find(r)
	if err != nil {
		return nil, err
	}
	s.outbox.mu.Lock()
	defer s.outbox.mu.Unlock()
	again := &delivery{event: d.event, guid: d.guid, body: d.body, to: d.to, redelivery: true}
	if s.outbox.hook.Target != "" {
		again.to = s.outbox.hook // a hook that has moved since
	}
	s.outbox.pending = append(s.outbox.pending, again)
	s.outbox.stir()
	return &rest.Answer{Status: http.StatusAccepted, Body: rest.Object{}}, nil
}
