package workflow_test

import (
	"io"
	"net"
	"sync"
)

// partition lies between a caller and controld, and can be cut.
type partition struct {
	addr string // that callers dial

	mu    sync.Mutex
	isCut bool
	conns map[net.Conn]struct{}
}

func (s *stage) newPartition() *partition {
	s.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	p := &partition{addr: listener.Addr().String(), conns: map[net.Conn]struct{}{}}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // the end of the test closes it
			}
			running.Go(func() { p.carry(conn, s.daemon.GRPCAddr) })
		}
	})
	s.Cleanup(func() {
		listener.Close()
		p.cut()
		running.Wait()
	})
	return p
}

// carry passes one connection on until either side ends it.
func (p *partition) carry(conn net.Conn, addr string) {
	defer conn.Close()
	onward, err := net.Dial("tcp", addr)
	if err != nil || !p.hold(conn, onward) {
		return
	}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{conn, onward}, {onward, conn}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // the end of one way is the end of the other
			conn.Close()
			onward.Close()
		})
	}
	both.Wait()
}

// hold notes connections, and reports false where the partition is cut.
func (p *partition) hold(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.isCut {
			c.Close()
		}
		p.conns[c] = struct{}{}
	}
	return !p.isCut
}

// cut ends all connections, and those that are made until mend.
func (p *partition) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isCut = true
	for c := range p.conns {
		c.Close()
	}
	clear(p.conns)
}

func (p *partition) mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isCut = false
}
