// Package delivery has what GitHub lists about its deliveries of webhooks.
package delivery

import "time"

// Missed is a delivery that GitHub could not hand over.
type Missed struct {
	// ID is what GitHub's API knows it by; DeliveryID what its header said.
	ID          int64
	DeliveryID  string
	Event       string
	DeliveredAt time.Time
}
