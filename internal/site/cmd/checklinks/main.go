// Command checklinks asks other servers for what the site of the documents in a directory links to, as make links does. It needs the internet, and
// ends within half an hour.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/remuda-ci/remuda/internal/retry"
	"github.com/remuda-ci/remuda/internal/site"
	"github.com/remuda-ci/remuda/internal/site/outer"
)

const (
	timeout = 20 * time.Second // of slow pages
	pause   = time.Second      // between two requests to one server: no server sees more than a reader's load
	tries   = 3
	longest = 30 * time.Minute
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "checklinks:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("one argument is needed: the directory of the site")
	}
	links, err := site.Site{Files: os.DirFS(args[0])}.Outer()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	checker := outer.Checker{Timeout: timeout, Pause: pause, Tries: tries, Sleep: retry.Sleep}
	report, err := checker.Check(ctx, links)
	for _, note := range report.Notes {
		fmt.Println("look:", note)
	}
	for _, problem := range report.Problems {
		fmt.Println(problem)
	}
	switch n := len(report.Problems); {
	case err != nil:
		return fmt.Errorf("after %d addresses: %w", report.Addresses, err)
	case n > 0:
		return fmt.Errorf("%d of the links to %d addresses of other servers lead nowhere", n, report.Addresses)
	}
	fmt.Printf("%s: all links to %d addresses of other servers lead somewhere\n", args[0], report.Addresses)
	return nil
}
