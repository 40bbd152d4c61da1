package githubsim

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/webhook"
)

// listDeliveries goes back in time from the cursor, which is the id of the last delivery of the page before.
func (s *Server) listDeliveries(r *http.Request) (*rest.Answer, error) {
	q := r.URL.Query()
	_, perPage := rest.PageOf(r)
	list := s.outbox.Seen(callerOf(r).app)
	if cursor := q.Get("cursor"); cursor != "" {
		last, err := strconv.ParseInt(strings.TrimPrefix(cursor, "v1_"), 10, 64)
		if err != nil {
			return nil, rest.Problem(http.StatusBadRequest, "Invalid cursor")
		}
		list = slices.DeleteFunc(list, func(d *webhook.Delivery) bool { return d.ID >= last })
	}
	switch status := q.Get("status"); status {
	case "":
	case "success", "failure": // by the code, as the description has it: up to 399 and from 400
		list = slices.DeleteFunc(list, func(d *webhook.Delivery) bool { return (d.Outcome.Code < 400) != (status == "success") })
	default:
		return nil, rest.Problem(http.StatusUnprocessableEntity, "Invalid status")
	}
	header := http.Header{}
	if len(list) > perPage {
		list = list[:perPage]
		q.Set("cursor", fmt.Sprintf("v1_%d", list[perPage-1].ID))
		next := url.URL{Path: r.URL.Path, RawQuery: q.Encode()}
		header.Set("Link", fmt.Sprintf("<%s%s>; rel=%q", s.issuerURL(), next.String(), "next"))
	}
	items := []rest.Object{}
	for _, d := range list {
		items = append(items, d.Item())
	}
	return &rest.Answer{Status: http.StatusOK, Header: header, Body: items}, nil
}

func (s *Server) getDelivery(r *http.Request) (*rest.Answer, error) {
	d, err := s.deliveryOf(r)
	if err != nil {
		return nil, err
	}
	body, err := d.Full()
	return rest.OK(body), err
}

func (s *Server) redeliver(r *http.Request) (*rest.Answer, error) {
	d, err := s.deliveryOf(r)
	if err != nil {
		return nil, err
	}
	s.outbox.Redeliver(d)
	return &rest.Answer{Status: http.StatusAccepted, Body: rest.Object{}}, nil
}

// deliveryOf returns the delivery that the path names, if the calling app may see it.
func (s *Server) deliveryOf(r *http.Request) (*webhook.Delivery, error) {
	id, err := rest.PathID(r, "id")
	if err != nil {
		return nil, err
	}
	d := s.outbox.Find(id, callerOf(r).app)
	if d == nil {
		return nil, rest.ErrNotFound
	}
	return d, nil
}
