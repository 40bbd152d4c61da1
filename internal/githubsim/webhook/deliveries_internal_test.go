package webhook

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
)

func TestSlowReceiverHasFailed(t *testing.T) {
	release := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer receiver.Close()
	defer close(release)
	o := NewOutbox(hclog.NewNullLogger(), time.Now)
	if o.client.Timeout != deliveryTime {
		t.Errorf("a receiver has %s", o.client.Timeout)
	}
	o.client.Timeout = 10 * time.Millisecond
	out := o.send(context.Background(), &Delivery{to: Hook{Target: receiver.URL}})
	if out.status != statusTimedOut || out.Code != 502 {
		t.Errorf("%+v", out)
	}
}

func TestOldDeliveriesAreForgotten(t *testing.T) {
	o := NewOutbox(hclog.NewNullLogger(), time.Now)
	for range maxDeliveries + 10 {
		o.record(&Delivery{})
	}
	if len(o.past) != maxDeliveries || o.past[0].ID != o.lastID-maxDeliveries+1 {
		t.Errorf("%d are remembered, the first is %d of %d", len(o.past), o.past[0].ID, o.lastID)
	}
}
