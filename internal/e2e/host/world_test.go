//go:build testhost

package host_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/remuda-ci/remuda/internal/awstest/imdstest"
)

// Addresses of the world that machines see. It is a network namespace of its
// own: nothing of it is in the way of this machine's, which may be on EC2 too.
const (
	worldAddress = "10.213.0.1"
	metadataIPv4 = "169.254.169.254"
	metadataIPv6 = "fd00:ec2::254"
	worldIPv6    = "fd00:213::1"
	router       = "fe80::1" // the world's end of every link: only an address of its own is found by neighbours
)

// world is what machines reach: instance metadata at its real addresses, and
// whatever was forwarded there. All machines of a test binary share it.
type world struct {
	name        string
	certificate certificate

	mu       sync.Mutex
	links    int
	metadata map[string]http.Handler // by the address of the machine
}

// theWorld is made when a test first asks for it. scripts/test-host removes it.
var theWorld = sync.OnceValues(func() (*world, error) {
	c, err := newCertificate()
	if err != nil {
		return nil, err
	}
	w := &world{name: setting.prefix + "world", certificate: c, metadata: map[string]http.Handler{}}
	for _, args := range [][]string{
		{"netns", "add", w.name},
		{"-n", w.name, "link", "set", "lo", "up"},
		{"-n", w.name, "addr", "add", worldAddress + "/32", "dev", "lo"},
		{"-n", w.name, "addr", "add", metadataIPv4 + "/32", "dev", "lo"},
		{"-n", w.name, "addr", "add", worldIPv6 + "/128", "dev", "lo", "nodad"}, // or it may be listened at some moments later only
		{"-n", w.name, "addr", "add", metadataIPv6 + "/128", "dev", "lo", "nodad"},
	} {
		if _, err := command("ip", args...); err != nil {
			return nil, err
		}
	}
	for _, address := range []string{metadataIPv4, metadataIPv6} {
		l, err := w.listen(net.JoinHostPort(address, "80"))
		if err != nil {
			return nil, err
		}
		go func() { _ = http.Serve(l, w) }() // as long as this process lives
	}
	return w, nil
})

func newWorld(t testing.TB) *world {
	t.Helper()
	w, err := theWorld()
	check(t, err)
	return w
}

// link is a machine's way into the world.
type link struct {
	namespace string // of the machine
	ipv4      string
	ipv6      string
}

// connect makes a network namespace for a machine, until the test ends.
func (w *world) connect(t testing.TB) link {
	t.Helper()
	w.mu.Lock()
	w.links++
	n := w.links
	w.mu.Unlock()
	l := link{
		namespace: fmt.Sprintf("%s%d", setting.prefix, n),
		ipv4:      fmt.Sprintf("10.213.%d.%d", 1+n/250, 1+n%250), ipv6: fmt.Sprintf("fd00:213::1:%x", n),
	}
	outer := fmt.Sprintf("m%d", n)
	run(t, "ip", "netns", "add", l.namespace)
	t.Cleanup(func() {
		if _, err := command("ip", "netns", "delete", l.namespace); err != nil {
			t.Error(err)
		}
	})
	run(t, "ip", "-n", w.name, "link", "add", outer, "type", "veth", "peer", "name", "host0", "netns", l.namespace)
	for _, args := range [][]string{
		{"-n", w.name, "link", "set", outer, "up"},
		{"-n", w.name, "addr", "add", router + "/64", "dev", outer, "nodad"},
		{"-n", l.namespace, "link", "set", "lo", "up"},
		{"-n", l.namespace, "link", "set", "host0", "up"},
		{"-n", l.namespace, "addr", "add", l.ipv4 + "/32", "dev", "host0"},
		{"-n", l.namespace, "addr", "add", l.ipv6 + "/128", "dev", "host0", "nodad"},
		{"-n", w.name, "route", "add", l.ipv4 + "/32", "dev", outer, "src", worldAddress},
		{"-n", w.name, "-6", "route", "add", l.ipv6 + "/128", "dev", outer, "src", worldIPv6},
		{"-n", l.namespace, "route", "add", "default", "dev", "host0", "src", l.ipv4},
		{"-n", l.namespace, "-6", "route", "add", "default", "via", router, "dev", "host0", "src", l.ipv6},
	} {
		run(t, "ip", args...)
	}
	return l
}

// tell answers a machine's questions for its metadata.
func (w *world) tell(l link, service *imdstest.Service) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.metadata[l.ipv4], w.metadata[l.ipv6] = service, service
}

// ServeHTTP is instance metadata, for whichever machine asks.
func (w *world) ServeHTTP(response http.ResponseWriter, r *http.Request) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		panic(err) // an address of net/http's own
	}
	w.mu.Lock()
	service := w.metadata[host]
	w.mu.Unlock()
	if service == nil {
		http.NotFound(response, r)
		return
	}
	service.ServeHTTP(response, r)
}

// within runs f on a thread that is in the namespace. Sockets stay there that it
// makes.
func (w *world) within(f func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		result <- func() error {
			namespace, err := os.Open("/run/netns/" + w.name)
			if err != nil {
				return err
			}
			defer namespace.Close()
			if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET); err != nil {
				return fmt.Errorf("enter network namespace %s: %w", w.name, err)
			}
			return f()
		}()
	}()
	return <-result
}

func (w *world) listen(address string) (l net.Listener, err error) {
	err = w.within(func() (err error) {
		l, err = net.Listen("tcp", address)
		return err
	})
	return l, err
}

// dial is for what listens there.
func (w *world) dial(_ context.Context, address string) (c net.Conn, err error) {
	err = w.within(func() (err error) {
		c, err = net.Dial("tcp", address)
		return err
	})
	return c, err
}

// forward lets machines reach what listens on this machine, host:port, until the
// test ends, and returns where.
func (w *world) forward(t testing.TB, to string) string {
	t.Helper()
	l, err := w.listen(worldAddress + ":0")
	check(t, err)
	forward(t, l, to)
	return l.Addr().String()
}

// forwardTLS is forward for what is to be reached by HTTPS.
func (w *world) forwardTLS(t testing.TB, to string) string {
	t.Helper()
	l, err := w.listen(worldAddress + ":0")
	check(t, err)
	forward(t, tls.NewListener(l, w.certificate.config), to)
	return l.Addr().String()
}

func forward(t testing.TB, l net.Listener, to string) {
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return // the test has ended
			}
			go pipe(from, to)
		}
	}()
}

// pipe copies both ways until both are through.
func pipe(from net.Conn, address string) {
	defer from.Close()
	to, err := net.Dial("tcp", address)
	if err != nil {
		return // as a machine sees who does not listen
	}
	defer to.Close()
	through := make(chan error, 2)
	copyTo := func(dst, src net.Conn) {
		_, err := io.Copy(dst, src)
		through <- errors.Join(err, dst.(interface{ CloseWrite() error }).CloseWrite())
	}
	go copyTo(to, from)
	go copyTo(from, to)
	<-through
	<-through
}
