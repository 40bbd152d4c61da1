package web_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/web"
)

// pipes is a network in memory, as a bubble needs it.
type pipes struct {
	connections chan net.Conn
	closed      chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.connections:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	p.connections <- there
	return here, nil
}

// inMemory serves within a bubble, until stop is called.
func inMemory(t *testing.T, o web.Options) (client *http.Client, stop func()) {
	t.Helper()
	s, err := web.New(o)
	if err != nil {
		t.Fatal(err)
	}
	p := &pipes{make(chan net.Conn), make(chan struct{})}
	served := make(chan error, 1)
	go func() { served <- s.Serve(p) }()
	transport := &http.Transport{DialContext: p.dial}
	return &http.Client{Transport: transport}, func() {
		transport.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s.Stop(ctx)
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}

// TestAnswersWithinASecond: a store that hangs holds up no answer. The delivery
// has failed then, and is recovered.
func TestAnswersWithinASecond(t *testing.T) {
	job := exampleJob(t)
	synctest.Test(t, func(t *testing.T) {
		o := (&desk{}).options()
		o.Webhooks.Take = func(ctx context.Context, _ lifecycle.Webhook) error {
			<-ctx.Done()
			return ctx.Err()
		}
		client, stop := inMemory(t, o)
		defer stop()
		began := time.Now()
		status, text, _ := send(t, client, "POST", "http://pipes", signedHeader(job), bytes.NewReader(job))
		if took := time.Since(began); status != 503 || took > time.Second || took < 500*time.Millisecond {
			t.Errorf("got %d %q after %s", status, text, took)
		}
	})
}

// TestASlowStoreIsWaitedFor: a write of 800 ms is one that was made.
func TestASlowStoreIsWaitedFor(t *testing.T) {
	job := exampleJob(t)
	synctest.Test(t, func(t *testing.T) {
		o := (&desk{}).options()
		o.Webhooks.Take = func(ctx context.Context, _ lifecycle.Webhook) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(800 * time.Millisecond):
				return nil
			}
		}
		client, stop := inMemory(t, o)
		defer stop()
		if status, text, _ := send(t, client, "POST", "http://pipes", signedHeader(job), bytes.NewReader(job)); status != 202 {
			t.Errorf("got %d %q", status, text)
		}
	})
}

// TestASlowSender: who does not come to an end is cut off.
func TestASlowSender(t *testing.T) {
	job := exampleJob(t)
	synctest.Test(t, func(t *testing.T) {
		d := &desk{}
		client, stop := inMemory(t, d.options())
		defer stop()
		began := time.Now()
		body, more := io.Pipe()
		go func() { _, _ = more.Write(job[:100]) }() // and nothing more
		status, text, _ := send(t, client, "POST", "http://pipes", signedHeader(job), body)
		_ = body.Close()
		if took := time.Since(began); status != 408 || took < 5*time.Second || took > 6*time.Second {
			t.Errorf("got %d %q after %s", status, text, took)
		}
		if len(d.taken) != 0 {
			t.Errorf("taken: %v", d.taken)
		}
	})
}

// TestASenderWhoLeaves does not undo the write that was begun.
func TestASenderWhoLeaves(t *testing.T) {
	job := exampleJob(t)
	synctest.Test(t, func(t *testing.T) {
		began, ended := make(chan struct{}), make(chan error, 1)
		o := (&desk{}).options()
		o.Webhooks.Take = func(ctx context.Context, _ lifecycle.Webhook) error {
			close(began)
			select {
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond):
			}
			ended <- ctx.Err()
			return ctx.Err()
		}
		client, stop := inMemory(t, o)
		defer stop()
		ctx, leave := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, "POST", "http://pipes/webhooks/github", bytes.NewReader(job))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = signedHeader(job)
		go func() {
			<-began
			leave()
		}()
		if _, err := client.Do(r); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		if err := <-ended; err != nil {
			t.Errorf("the write was cut off: %v", err)
		}
	})
}

// TestTooManyAtOnce: slow senders and a slow store take up a bounded part of
// this process.
func TestTooManyAtOnce(t *testing.T) {
	job := exampleJob(t)
	synctest.Test(t, func(t *testing.T) {
		const most = 64
		begun, release := make(chan struct{}, most), make(chan struct{})
		o := (&desk{}).options()
		o.Webhooks.Take = func(context.Context, lifecycle.Webhook) error {
			begun <- struct{}{}
			<-release
			return nil
		}
		client, stop := inMemory(t, o)
		defer stop()
		letAll := sync.OnceFunc(func() { close(release) })
		defer letAll()
		statuses := make(chan int, most)
		for range most {
			go func() {
				status, _, _ := send(t, client, "POST", "http://pipes", signedHeader(job), bytes.NewReader(job))
				statuses <- status
			}()
		}
		for range most {
			<-begun
		}
		asked := time.Now()
		if status, text, header := send(t, client, "POST", "http://pipes", signedHeader(job), bytes.NewReader(job)); status != 503 || header.Get("Retry-After") != "1" {
			t.Errorf("one more: %d %q, Retry-After %q", status, text, header.Get("Retry-After"))
		}
		if took := time.Since(asked); took != 3*time.Second {
			t.Errorf("it waited for %s", took)
		}
		letAll()
		for range most {
			if status := <-statuses; status != 202 {
				t.Errorf("one of the first: %d", status)
			}
		}
		if status, text, _ := send(t, client, "POST", "http://pipes", signedHeader(job), bytes.NewReader(job)); status != 202 {
			t.Errorf("when there is room again: %d %q", status, text)
		}
	})
}

// TestABurstWaits: deliveries that come while all places are taken are taken in their turn, as long as that is soon.
func TestABurstWaits(t *testing.T) {
	job := exampleJob(t)
	synctest.Test(t, func(t *testing.T) {
		o := (&desk{}).options()
		o.Webhooks.Take = func(context.Context, lifecycle.Webhook) error {
			time.Sleep(100 * time.Millisecond)
			return nil
		}
		client, stop := inMemory(t, o)
		defer stop()
		const burst = 300 // the last of them has a place after 400 ms
		statuses := make(chan int, burst)
		for i := range burst {
			go func() {
				time.Sleep(time.Duration(i/50) * 10 * time.Millisecond)
				status, _, _ := send(t, client, "POST", "http://pipes", signedHeader(job), bytes.NewReader(job))
				statuses <- status
			}()
		}
		for range burst {
			if status := <-statuses; status != 202 {
				t.Errorf("one of the burst: %d", status)
			}
		}
	})
}

// TestSlowSendersShutNoDeliveryOut: bodies that do not come take no place from those that do.
func TestSlowSendersShutNoDeliveryOut(t *testing.T) {
	job := exampleJob(t)
	synctest.Test(t, func(t *testing.T) {
		d := &desk{}
		client, stop := inMemory(t, d.options())
		defer stop()
		const slow = 300
		statuses := make(chan int, slow)
		for range slow {
			go func() {
				body, more := io.Pipe()
				defer body.Close()
				go func() { _, _ = more.Write(job[:100]) }() // and nothing more
				status, _, _ := send(t, client, "POST", "http://pipes", signedHeader(job), body)
				statuses <- status
			}()
		}
		time.Sleep(time.Second)
		for n := range 148 {
			if status, text, _ := send(t, client, "POST", "http://pipes", signedHeader(job), bytes.NewReader(job)); status != 202 && status != 200 {
				t.Fatalf("delivery %d: %d %q", n+1, status, text)
			}
		}
		for range slow {
			if status := <-statuses; status != 503 && status != 408 {
				t.Errorf("a slow one: %d", status)
			}
		}
	})
}
