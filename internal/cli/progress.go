package cli

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/cli/view"
)

const (
	// quiet is how long something may take before a person wants to know what it does.
	quiet = time.Second
	// lookEvery is how often progress is looked at. A look is one call, ExplainRun, which reads a run.
	lookEvery = 3 * time.Second
	// lineWidth is the longest line of progress, so that it can be overwritten on a narrow terminal.
	lineWidth = 100
)

// fixed is progress that has one text.
func fixed(text string) func(context.Context) string {
	return func(context.Context) string { return text }
}

// progress says on stderr what is awaited, once it takes longer than a second: on a terminal on one line, with the time
// so far, and elsewhere a line for each change. The function that it returns ends it and waits for its end.
func (a *App) progress(ctx context.Context, look func(context.Context) string) func() {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { a.report(ctx, look) })
	return func() {
		cancel()
		running.Wait()
	}
}

func (a *App) report(ctx context.Context, look func(context.Context) string) {
	begin, last, shown := time.Now(), "", false
	timer := time.NewTimer(quiet)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			if shown && a.ErrTerminal {
				fmt.Fprint(a.Stderr, "\r\x1b[K")
			}
			return
		case <-timer.C:
		}
		text := look(ctx)
		switch {
		case text == "" || ctx.Err() != nil:
		case a.ErrTerminal:
			fmt.Fprint(a.Stderr, "\r\x1b[K"+shorten(view.Span(time.Since(begin))+"  "+text))
			shown = true
		case text != last:
			a.note("%s  %s", view.Span(time.Since(begin)), text)
		}
		last = text
		timer.Reset(lookEvery)
	}
}

// shorten keeps a text on one line.
func shorten(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > lineWidth {
		return string(runes[:lineWidth-1]) + "…"
	}
	return text
}
