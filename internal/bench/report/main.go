// Command report measures Remuda and writes what it found into docs/performance.md, between markers. `make bench-report` runs it, and
// `make bench-report PARTS=callers,webhooks` measures these parts alone and leaves the others as they are.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	path := flags.String("page", "docs/performance.md", "the page to write")
	only := flags.String("parts", "", "the parts to measure, with commas; empty: all")
	from := flags.String("from", "", "a file with what benchmarks printed: measure nothing, and print the tables")
	text := flags.Bool("text", false, "measure nothing: write the sentences, without figures")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	if *from != "" {
		return fill(*path, *from, chosen, stdout)
	}
	if i := slices.IndexFunc(chosen, func(p part) bool { return p.beside != nil }); i >= 0 && !*text {
		return fmt.Errorf("the part %s needs other tools: `ONLY='%s' make peers` measures it", chosen[i].name, chosen[i].beside.only)
	}
	var failed []error
	for _, p := range chosen {
		began := time.Now()
		var found figures
		var missing error
		if !*text {
			if found, missing = p.measure(ctx); missing != nil {
				failed = append(failed, fmt.Errorf("measure %s: %w", p.name, missing))
			}
			fmt.Fprintf(stdout, "%s took %s\n", p.name, time.Since(began).Round(time.Second))
		}
		if ctx.Err() != nil { // this part and the rest stay as they are
			return context.Cause(ctx)
		}
		if err := write(*path, p.name, p.render(found, missing)); err != nil {
			return err
		}
	}
	return errors.Join(append(failed, finish(*path, stdout))...)
}

// fill writes parts of benchmarks that ran already into the page, and prints their tables.
func fill(path, from string, chosen []part, stdout io.Writer) error {
	out, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("read benchmarks: %w", err)
	}
	defer out.Close()
	found, err := parse(out)
	if err != nil {
		return err
	}
	for _, p := range chosen {
		text := p.render(found, nil)
		if err := write(path, p.name, text); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "%s\n%s\n", p.title, aligned(text))
	}
	return finish(path, stdout)
}

// finish writes the machine that was measured into the page, and says which page it is.
func finish(path string, stdout io.Writer) error {
	if err := write(path, "machine", machine()); err != nil {
		return err
	}
	fmt.Fprintln(stdout, "wrote", path)
	return nil
}

// write puts what was found into the page. It is done after each part, so that an interruption loses only one.
func write(path, name, text string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read page: %w", err)
	}
	changed, err := replace(string(page), name, text)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// choose are the parts with these names, in the order of the page. Without names they are all that need no other tool.
func choose(names string) ([]part, error) {
	if names == "" {
		return slices.DeleteFunc(slices.Clone(parts), func(p part) bool { return p.beside != nil }), nil
	}
	var chosen []part
	for _, name := range strings.Split(names, ",") {
		i := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no part %q; there are %s", name, strings.Join(partNames(), ", "))
		}
		chosen = append(chosen, parts[i])
	}
	return chosen, nil
}

func partNames() (names []string) {
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}
