package meter

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
)

// counted is a connection whose reads are counted.
type counted struct {
	*net.TCPConn
	n *atomic.Int64
}

// Read reads and counts.
func (c counted) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// WriteTo is here so that that of the TCPConn, which would not count, is not found.
func (c counted) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{c})
}

// dial connects to a server or an upstream proxy.
func (m *Meter) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return counted{conn.(*net.TCPConn), &m.down}, nil
}

// connect reaches a server for a tunnel, through the upstream proxy if there is one for it.
func (m *Meter) connect(ctx context.Context, hostPort string) (net.Conn, error) {
	proxy, err := m.upstream(&http.Request{URL: &url.URL{Scheme: "https", Host: hostPort}})
	if err != nil {
		return nil, fmt.Errorf("find the proxy for %s: %w", hostPort, err)
	}
	if proxy == nil {
		return m.dial(ctx, "tcp", hostPort)
	}
	if proxy.Scheme != "http" && proxy.Scheme != "https" {
		return nil, fmt.Errorf("the proxy of the environment is one for %s, and only http and https are known here", proxy.Scheme)
	}
	conn, err := m.dial(ctx, "tcp", addressOf(proxy))
	if err != nil {
		return nil, err
	}
	if proxy.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: proxy.Hostname()})
	}
	through, err := askFor(ctx, conn, proxy, hostPort)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("connect to %s through the proxy of the environment: %w", hostPort, err)
	}
	return through, nil
}

// addressOf is host:port of a proxy.
func addressOf(proxy *url.URL) string {
	port := proxy.Port()
	switch {
	case port != "":
	case proxy.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	return net.JoinHostPort(proxy.Hostname(), port)
}

// askFor has a proxy connect to a server.
func askFor(ctx context.Context, conn net.Conn, proxy *url.URL, hostPort string) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	ask := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: hostPort}, Host: hostPort, Header: http.Header{}}
	if user := proxy.User; user != nil {
		password, _ := user.Password()
		ask.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
	}
	if err := ask.Write(conn); err != nil {
		return nil, err
	}
	r := bufio.NewReader(conn)
	answer, err := http.ReadResponse(r, ask)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers %s", answer.Status)
	}
	return ahead{conn, r}, nil
}

// ahead is a connection whose first bytes were read into a buffer.
type ahead struct {
	net.Conn
	r *bufio.Reader
}

// Read reads what is buffered, and then the connection.
func (a ahead) Read(p []byte) (int, error) { return a.r.Read(p) }
