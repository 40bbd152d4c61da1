package ports

import (
	"context"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Notices hands out what EC2 announces of machines, ours and others'. Delivery is at least once, in no order.
type Notices interface {
	// Receive hands out some notices and hides them from others for a while. It may wait up to 20 s for a
	// first one. What cannot be parsed is logged and deleted.
	Receive(ctx context.Context) ([]lifecycle.NoticeDelivery, error)
	// Delete removes deliveries (1 to 10). An unknown handle is no error.
	Delete(ctx context.Context, handles ...string) error
}
