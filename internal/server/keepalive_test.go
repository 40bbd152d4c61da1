package server_test

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
)

// peer is a client of HTTP/2 that does only what a test says.
func (w *world) peer(t *testing.T) *http2.Framer {
	t.Helper()
	conn, err := w.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // closing twice is its only error
	framer := http2.NewFramer(conn, conn)
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(framer.WriteSettings(), framer.WriteSettingsAck()); err != nil {
		t.Fatal(err)
	}
	return framer
}

// A connection whose client is silent is pinged after a minute, and closed if it has not answered in 20 s.
func TestASilentConnectionIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, began, pinged := newWorld(t).peer(t), time.Now(), time.Duration(0)
		for {
			frame, err := client.ReadFrame()
			if err != nil {
				break
			}
			if _, ok := frame.(*http2.PingFrame); ok {
				pinged = time.Since(began)
			}
		}
		if closed := time.Since(began); pinged != time.Minute || closed != 80*time.Second {
			t.Errorf("pinged after %s and closed after %s, want 1m and 1m20s", pinged, closed)
		}
	})
}

// A client may ping every 10 s, which is the least that gRPC's own do, also while it has no call.
func TestHowOftenAClientMayPing(t *testing.T) {
	for every, want := range map[time.Duration]http2.ErrCode{10 * time.Second: http2.ErrCodeNo, 9 * time.Second: http2.ErrCodeEnhanceYourCalm} {
		t.Run(every.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, code := newWorld(t).peer(t), http2.ErrCodeNo
				for range 10 {
					time.Sleep(every)
					_ = client.WritePing(false, [8]byte{}) // what the server has said before it closed is there to be read
					code = max(code, untilPong(client))
				}
				if code != want {
					t.Errorf("the server said %s, want %s", code, want)
				}
			})
		})
	}
}

// untilPong is with which code the server goes away before it answers a ping.
func untilPong(client *http2.Framer) http2.ErrCode {
	for {
		frame, err := client.ReadFrame()
		if err != nil {
			return http2.ErrCodeNo
		}
		switch frame := frame.(type) {
		case *http2.GoAwayFrame:
			return frame.ErrCode
		case *http2.PingFrame:
			if frame.IsAck() {
				return http2.ErrCodeNo
			}
		}
	}
}
