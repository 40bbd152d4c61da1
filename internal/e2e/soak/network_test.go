//go:build soak

package soak_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// network is a network namespace in which relays of the test listen on loopback, so a process in it reaches what it is given a relay for, and nothing
// else. By a link of its own, which no fault cuts, the test reads the metrics of what is in it.
type network struct {
	number int
	file   *os.File // of the namespace
	relays []net.Listener
}

// inThread runs f on a thread that ends with it, so that f may move the thread to another namespace.
func inThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		done <- f()
	}()
	return <-done
}

func newNetwork(t testing.TB, number int) *network {
	t.Helper()
	n := &network{number: number}
	err := inThread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network: %w", err)
		}
		n.file, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	if err == nil {
		err = errors.Join(n.heal(), n.link())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, l := range n.relays {
			_ = l.Close() // it accepts nothing more, which was to be
		}
		_ = n.file.Close() // it was only opened
	})
	return n
}

func (n *network) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file.Fd()) }

// inside runs a program in the namespace.
func (n *network) inside(args ...string) error {
	return run("nsenter", append([]string{"--net=" + n.path()}, args...)...)
}

// link makes the link between the namespaces.
func (n *network) link() error {
	outer, inner := fmt.Sprintf("soak%d", n.number), fmt.Sprintf("seen%d", n.number)
	return errors.Join(
		run("ip", "link", "add", outer, "type", "veth", "peer", "name", inner, "netns", n.path()),
		run("ip", "addr", "add", fmt.Sprintf("10.77.%d.1/30", n.number), "dev", outer),
		n.inside("ip", "addr", "add", n.address()+"/30", "dev", inner),
		run("ip", "link", "set", outer, "up"),
		n.inside("ip", "link", "set", inner, "up"),
	)
}

// address is that of the namespace at the link.
func (n *network) address() string { return fmt.Sprintf("10.77.%d.2", n.number) }

// loopback sets loopback up or down.
func (n *network) loopback(state string) error { return n.inside("ip", "link", "set", "lo", state) }

// cut has everything that is sent be lost: what controld sends to others, and what callers send to it. Nothing is refused.
func (n *network) cut() error { return n.loopback("down") }

func (n *network) heal() error { return n.loopback("up") }

// enter moves this thread to the namespace.
func (n *network) enter() error {
	if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter a network: %w", err)
	}
	return nil
}

// relay passes connections inside on to an address of the test's network, and returns the address inside.
func (n *network) relay(t testing.TB, to string) string {
	t.Helper()
	var l net.Listener
	err := inThread(func() (err error) {
		if err = n.enter(); err == nil {
			l, err = net.Listen("tcp", "127.0.0.1:0")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	n.relays = append(n.relays, l)
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return // it was closed
			}
			go pass(from, to)
		}
	}()
	return l.Addr().String()
}

// pass copies both ways until either end is done.
func pass(from net.Conn, address string) {
	defer from.Close()
	to, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer to.Close()
	var once sync.Once
	done := make(chan struct{})
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		go func() {
			_, _ = io.Copy(way[0], way[1]) // a connection that breaks is what the test is about
			once.Do(func() { close(done) })
		}()
	}
	<-done
}

// dial connects to an address inside.
func (n *network) dial(ctx context.Context, address string) (conn net.Conn, err error) {
	err = inThread(func() error {
		if err := n.enter(); err != nil {
			return err
		}
		var d net.Dialer
		conn, err = d.DialContext(ctx, "tcp", address)
		return err
	})
	return conn, err
}
