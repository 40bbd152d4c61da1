package main

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/mattn/go-isatty"
)

// progress says that something still goes on: in a terminal by one line that changes each second, and elsewhere by a line now and then.
type progress struct {
	out      *os.File
	terminal bool
}

// rarely is the time between two lines where there is no terminal.
const rarely = 15 * time.Second

func progressOn(out *os.File) *progress {
	return &progress{out: out, terminal: isatty.IsTerminal(out.Fd())}
}

// begin shows the time, and what more there is to say, until the function that it returns is called.
func (p *progress) begin(more func() string) (stop func()) {
	began, done := time.Now(), make(chan struct{})
	every, before, after := rarely, "  ", "\n"
	if p.terminal {
		every, before, after = time.Second, "\r  ", "\x1b[K"
	}
	var shown sync.WaitGroup
	shown.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				fmt.Fprintf(p.out, "%s%.0f s, %s downloaded ...%s", before, time.Since(began).Seconds(), more(), after)
			case <-done:
				if p.terminal {
					fmt.Fprint(p.out, "\r\x1b[K")
				}
				return
			}
		}
	})
	return sync.OnceFunc(func() { close(done); shown.Wait() })
}
