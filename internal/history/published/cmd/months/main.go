// Command months makes histories for remuda plan --history of records of CI jobs that others have published, as make months does. It downloads the
// records, unless -from names a directory that has their files.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/remuda-ci/remuda/internal/history/published"
	"github.com/remuda-ci/remuda/internal/safefile"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "months:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("months", flag.ContinueOnError)
	flags.SetOutput(stderr)
	from := flags.String("from", "", "read the files from this directory instead: DIR/OWNER/NAME/COMMIT/PATH")
	into := flags.String("into", "examples/history", "the directory that gets NAME.csv of each record")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(published.Records(), flags.Args())
	if err != nil {
		return err
	}
	source := published.Web(published.GitHub)
	if *from != "" {
		source = published.Directory(*from)
	}
	say := func(line string) { fmt.Fprintln(stderr, line) }
	var failed []error
	for _, r := range chosen {
		if err := write(ctx, r, source, *into, say); err != nil {
			failed = append(failed, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failed...)
}

// choose are the records of the names, or all.
func choose(records []published.Record, names []string) (chosen []published.Record, err error) {
	if len(names) == 0 {
		return records, nil
	}
	for _, name := range names {
		i := slices.IndexFunc(records, func(r published.Record) bool { return r.Name == name })
		if i < 0 {
			var known []string
			for _, r := range records {
				known = append(known, r.Name)
			}
			return nil, fmt.Errorf("there is no record %q; there are %s", name, strings.Join(known, ", "))
		}
		chosen = append(chosen, records[i])
	}
	return chosen, nil
}

// write makes the history of a record. A file from before stays as it is until all of the new one is there.
func write(ctx context.Context, r published.Record, source published.Source, into string, say func(string)) error {
	converted, err := r.Read(ctx, source, say)
	if err != nil {
		return err
	}
	data, err := converted.CSV()
	if err != nil {
		return fmt.Errorf("write %s: %w", r.Name, err)
	}
	path := filepath.Join(into, r.Name+".csv")
	if err := safefile.Replace(path, data, 0o644, false); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	say(fmt.Sprintf("%s: %d jobs in %s", r.Name, len(converted.Jobs), path))
	for _, why := range slices.Sorted(maps.Keys(converted.LeftOut)) {
		say(fmt.Sprintf("%s: left out: %d that %s", r.Name, converted.LeftOut[why], why))
	}
	return nil
}
