package web

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestWhatWaitsIsBounded: the deliveries that wait for a place have no more bytes together than they may.
func TestWhatWaitsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &receiver{slots: make(chan struct{}, 1)}
		if !h.begin(1) {
			t.Fatal("the first has no place")
		}
		waits := make(chan bool, 1)
		go func() { waits <- h.begin(maxWaitingBytes) }()
		synctest.Wait()
		began := time.Now()
		if h.begin(1) || time.Since(began) != 0 {
			t.Errorf("a byte too much waits for %s", time.Since(began))
		}
		<-h.slots
		if !<-waits {
			t.Error("who waited has no place")
		}
		if h.begin(1) || time.Since(began) != placePatience {
			t.Errorf("one without a place waits for %s", time.Since(began))
		}
		if left := h.waiting.Load(); left != 0 {
			t.Errorf("%d bytes count as waiting", left)
		}
	})
}
