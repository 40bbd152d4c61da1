package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/remuda-ci/remuda/internal/ca"
)

const (
	day = 24 * time.Hour
	// caDays: an authority outlives what it issues, and its renewal is one of every machine that trusts it.
	caDays = 3650
	// serverDays is about what public authorities allowed until 2026. The renewed certificate needs no restart.
	serverDays = 398
	// clientDays is short, since controld knows no list of revoked certificates: taking the subject out of callers.operators ends one.
	clientDays = 90
	// maxDays keeps a date within what X.509 can write.
	maxDays = 36500
)

// caFlags are those of both commands.
type caFlags struct {
	dir, hosts, organization, output string
	days                             int
}

func (o *caFlags) define(f *flag.FlagSet) {
	f.StringVar(&o.organization, "organization", "", "the organization `O` of the subject: CN=NAME,O=ORGANIZATION")
	f.StringVar(&o.output, "output", "table", "`table` for people, json for programs")
}

func (o *caFlags) check(c *call) error {
	switch {
	case o.dir == "":
		return c.misused("--dir is required")
	case o.output != "table" && o.output != "json":
		return c.misused("--output %.40q is neither table nor json", o.output)
	case o.days < 1 || o.days > maxDays:
		return c.misused("--days %d is not from 1 to %d", o.days, maxDays)
	}
	return nil
}

// names are the hosts of a list with commas.
func (o *caFlags) names() []string {
	return slices.DeleteFunc(strings.Split(o.hosts, ","), func(host string) bool { return host == "" })
}

// caInit makes an authority and the certificate of controld.
func caInit(_ context.Context, c *call) error {
	var o caFlags
	var serverFor int
	if _, err := c.parse(0, func(f *flag.FlagSet) {
		o.define(f)
		f.StringVar(&o.dir, "dir", "", "the `DIR` that is made, with the authority and its key")
		f.StringVar(&o.hosts, "host", "", "the DNS names and IP addresses of controld, `NAMES` separated by commas")
		f.IntVar(&o.days, "days", caDays, "for how many `DAYS` the authority is valid")
		f.IntVar(&serverFor, "server-days", serverDays, "for how many `DAYS` controld's certificate is valid")
	}); err != nil {
		return err
	}
	if err := o.check(c); err != nil {
		return err
	}
	if len(o.names()) == 0 {
		return c.misused("--host is required")
	}
	if serverFor < 1 || serverFor > o.days {
		return c.misused("--server-days %d is not from 1 to the %d of the authority", serverFor, o.days)
	}
	server := ca.Request{Name: "controld", Organization: o.organization, Hosts: o.names(), Valid: time.Duration(serverFor) * day}
	if err := server.Validate(); err != nil {
		return c.misused("%v", err)
	}
	files, err := ca.Init(o.dir, ca.Options{Name: "Remuda private CA", Valid: time.Duration(o.days) * day, Server: server}, time.Now())
	if errors.Is(err, ca.ErrExists) {
		return fmt.Errorf("--dir %w: an authority is not replaced, since all of its certificates would end with it", err)
	}
	if err != nil {
		return err
	}
	return o.print(c.stdout, files)
}

// caIssue makes a certificate of an operator, or of controld again.
func caIssue(_ context.Context, c *call) error {
	var o caFlags
	var to string
	var replace bool
	operands, err := c.parse(1, func(f *flag.FlagSet) {
		o.define(f)
		f.StringVar(&o.dir, "dir", "", "the `DIR` of the authority")
		f.StringVar(&to, "to", "", "the `DIR` for the certificate and its key; that of the authority if left out")
		f.StringVar(&o.hosts, "host", "", "the DNS names and IP addresses of a server, `NAMES` separated by commas, for a certificate of controld")
		f.IntVar(&o.days, "days", 0, fmt.Sprintf("for how many `DAYS` it is valid; 0: %d, with --host %d", clientDays, serverDays))
		f.BoolVar(&replace, "replace", false, "replace the certificate and the key of an earlier call")
	})
	if err != nil {
		return err
	}
	hosts := o.names()
	if o.days == 0 {
		o.days = clientDays
		if len(hosts) > 0 {
			o.days = serverDays
		}
	}
	if err := o.check(c); err != nil {
		return err
	}
	r := ca.Request{Name: operands[0], Organization: o.organization, Hosts: hosts, Valid: time.Duration(o.days) * day, Replace: replace}
	if err := r.Validate(); err != nil {
		return c.misused("%v", err)
	}
	authority, err := ca.Open(o.dir)
	if err != nil {
		return fmt.Errorf("--dir %s: %w", o.dir, err)
	}
	if to == "" {
		to = o.dir
	}
	files, err := authority.Issue(to, r, time.Now())
	if errors.Is(err, ca.ErrExists) {
		return fmt.Errorf("%w: --replace renews it", err)
	}
	if err != nil {
		return err
	}
	return o.print(c.stdout, files)
}

// print lists the files that were written.
func (o *caFlags) print(out io.Writer, files []ca.File) error {
	if o.output == "json" {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(struct {
			Files []ca.File `json:"files"`
		}{files})
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FILE\tKIND\tVALID UNTIL\tSUBJECT")
	for _, f := range files {
		until, subject := "-", "-"
		if f.NotAfter != nil {
			until, subject = f.NotAfter.Format(time.RFC3339), f.Subject
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", f.Path, f.Kind, until, subject)
	}
	return w.Flush()
}
