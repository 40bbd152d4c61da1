package world

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/notice"
)

// NoticePort is the queue of notices as a replica reaches it. A received notice is not
// hidden from other replicas, so most notices are handled more than once.
type NoticePort struct{ w *World }

func (p NoticePort) Receive(context.Context) ([]notice.Delivery, error) {
	var got []notice.Delivery
	err := QueuePort(p).call("receive notices", func() error {
		got = slices.Clone(p.w.notices)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return got, nil
}

func (p NoticePort) Delete(_ context.Context, handles ...string) error {
	return QueuePort(p).call("delete notices", func() error {
		p.w.notices = slices.DeleteFunc(p.w.notices, func(d notice.Delivery) bool { return slices.Contains(handles, d.Handle) })
		return nil
	})
}

// Announce puts an interruption into the queue of notices, a while after the host has seen
// it.
func (w *World) Announce(instanceID string) {
	n := notice.Notice{InstanceID: instanceID, Kind: notice.Interruption, At: w.Now}
	w.After(w.Between(0, 3*time.Minute), func() {
		w.Tell("ec2", "announces", instanceID)
		w.announced++
		w.notices = append(w.notices, notice.Delivery{Notice: n, Handle: strconv.Itoa(w.announced)})
	})
}
