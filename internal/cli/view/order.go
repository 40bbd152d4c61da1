package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// Order is an order in which hosts are shown.
type Order string

// The orders. OrderPool is that of Sort, and decides between equal hosts of any other.
const (
	OrderPool       Order = "pool"
	OrderState      Order = "state"
	OrderRepository Order = "repository"
	OrderSince      Order = "since" // the longest in its state first
	OrderNext       Order = "next"  // the earliest next event first; a host without one last
)

// Orders are all orders, in the order in which a person goes through them.
var Orders = []Order{OrderPool, OrderState, OrderRepository, OrderSince, OrderNext}

// SortBy orders hosts.
func SortBy(hosts []*remudav1.Instance, by Order, now time.Time) {
	Sort(hosts)
	slices.SortStableFunc(hosts, func(a, b *remudav1.Instance) int {
		switch by {
		case OrderState:
			return cmp.Compare(slices.Index(States, State(a)), slices.Index(States, State(b)))
		case OrderRepository:
			of, _, _ := work(a)
			than, _, _ := work(b)
			return strings.Compare(of, than)
		case OrderSince:
			return since(a).Compare(since(b))
		case OrderNext:
			_, at := next(a, now)
			_, than := next(b, now)
			return cmp.Or(cmp.Compare(unknown(at), unknown(than)), at.Compare(than))
		}
		return 0
	})
}

// unknown is 1 for no time, and 0 for any other.
func unknown(t time.Time) int {
	if t.IsZero() {
		return 1
	}
	return 0
}
