// Package meter counts what programs download: it is a forward proxy on loopback, which they get by HTTPS_PROXY and HTTP_PROXY.
package meter

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Upstream names the proxy that a request goes through; nil for none. http.ProxyFromEnvironment is one.
type Upstream func(*http.Request) (*url.URL, error)

// Meter is a forward proxy for http, and by CONNECT for https.
type Meter struct {
	upstream Upstream
	listener net.Listener
	server   http.Server
	plain    httputil.ReverseProxy
	down     atomic.Int64

	open    context.Context
	close   context.CancelFunc
	tunnels sync.WaitGroup
}

// connectWithin bounds the way to a server, that through an upstream proxy included.
const connectWithin = 30 * time.Second

// Start starts a meter on a free port of loopback. It is to be closed.
func Start(upstream Upstream) (*Meter, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the counting proxy: %w", err)
	}
	m := &Meter{upstream: upstream, listener: listener}
	m.open, m.close = context.WithCancel(context.Background())
	m.plain = httputil.ReverseProxy{
		Rewrite:   func(*httputil.ProxyRequest) {}, // it has the whole address already
		Transport: &http.Transport{Proxy: upstream, DialContext: m.dial, DisableCompression: true},
	}
	m.server = http.Server{Handler: m, ReadHeaderTimeout: connectWithin}
	go func() { _ = m.server.Serve(listener) }() // it ends by Close, with an error that says so
	return m, nil
}

// URL is the address of the proxy.
func (m *Meter) URL() string { return "http://" + m.listener.Addr().String() }

// Downloaded is how many bytes servers have sent so far, with all that their protocols add.
func (m *Meter) Downloaded() int64 { return m.down.Load() }

// Close ends the proxy and all that goes through it.
func (m *Meter) Close() {
	m.close()
	_ = m.server.Close() // what it cannot close is closed
	m.tunnels.Wait()
}

// ServeHTTP sends a request on.
func (m *Meter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		m.tunnel(w, r)
	case r.URL.IsAbs():
		m.plain.ServeHTTP(w, r)
	default:
		http.Error(w, "this is a proxy; ask it for a whole address", http.StatusBadRequest)
	}
}

// tunnel carries bytes between the client and the server that it names, until one of them ends.
func (m *Meter) tunnel(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), connectWithin)
	defer cancel()
	server, err := m.connect(ctx, r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		server.Close()
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	m.tunnels.Add(1)
	go func() {
		defer m.tunnels.Done()
		defer context.AfterFunc(m.open, func() { client.Close(); server.Close() })()
		if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err == nil {
			carry(client, buffered, server)
		}
		client.Close()
		server.Close()
	}()
}

// carry returns when both directions have ended. The end of one is passed on, and the other may go on.
func carry(client net.Conn, fromClient io.Reader, server net.Conn) {
	var up sync.WaitGroup
	up.Go(func() {
		_, err := io.Copy(server, fromClient)
		endWrites(server, err)
	})
	_, err := io.Copy(client, server)
	endWrites(client, err)
	up.Wait()
}

// endWrites lets the other side read to the end; after an error there is none.
func endWrites(c net.Conn, err error) {
	half, ok := c.(interface{ CloseWrite() error })
	if err != nil || !ok || half.CloseWrite() != nil {
		c.Close()
	}
}
