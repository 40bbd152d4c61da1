package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/remuda-ci/remuda/internal/cli/connect"
	"github.com/remuda-ci/remuda/internal/cli/contexts"
	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/cli/output"
	"github.com/remuda-ci/remuda/internal/cli/table"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// LoginFlags are what a context has. Files may be named relative to the working directory.
type LoginFlags struct {
	CA, Cert, Key, ServerName, TokenFile string
}

// Login tries a controld and keeps it as a context, which becomes the current one.
func (a *App) Login(ctx context.Context, name string, f LoginFlags) error {
	if err := contexts.CheckName(name); err != nil {
		return err
	}
	target, err := a.loginTarget(f)
	if err != nil {
		return err
	}
	path, file, err := a.contextsFile()
	if err != nil {
		return err
	}
	if err := a.try(ctx, target); err != nil {
		return err
	}
	file.Put(contexts.Context{Name: name, Target: target})
	if err := file.Save(path); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Stdout, "Context %s (%s) is kept in %s and is the current one.\n", name, target.Address, path)
	return failure.Of("write answer", err)
}

func (a *App) loginTarget(f LoginFlags) (connect.Target, error) {
	if a.Address == "" {
		return connect.Target{}, failure.Misused("--address is required, such as controld.example.com:7443")
	}
	address, err := connect.WithPort(a.Address)
	if err != nil {
		return connect.Target{}, failure.Misused("--address: %v", err)
	}
	target := connect.Target{Address: address, ServerName: f.ServerName, CAFile: f.CA, CertFile: f.Cert, KeyFile: f.Key, TokenFile: f.TokenFile}
	for _, file := range []*string{&target.CAFile, &target.CertFile, &target.KeyFile, &target.TokenFile} {
		if *file == "" {
			continue
		}
		if *file, err = filepath.Abs(*file); err != nil {
			return target, failure.Of("find file", err)
		}
	}
	if err := target.Validate(); err != nil {
		return target, failure.Misused("%v", err)
	}
	return target, nil
}

// try makes the cheapest call that every operator may make. A token is of a workflow and counts once, so only the
// connection is tried with it.
func (a *App) try(ctx context.Context, target connect.Target) error {
	if _, err := target.Probe(ctx); err != nil {
		return err
	}
	if target.TokenFile != "" {
		_, err := connect.ReadToken(target.TokenFile)
		return failure.Of("try "+target.Address, err)
	}
	s, err := a.openTarget(target)
	if err != nil {
		return err
	}
	defer s.close()
	_, err = call(ctx, s, DefaultTimeout, "try "+target.Address, s.fleet.ListPools, &remudav1.ListPoolsRequest{PageSize: 1})
	if code := failure.CodeOf(err); err == nil || code == failure.NotAllowed || code == failure.Interrupted {
		return err
	}
	// controld was reached and knows the caller. It may miss something, such as the tables that the first refresh makes.
	a.note("controld answers, and is not ready: %v", err)
	return nil
}

// contextRow is a context as programs get it.
type contextRow struct {
	Name       string `json:"name"`
	Current    bool   `json:"current"`
	Address    string `json:"address"`
	ServerName string `json:"serverName,omitempty"`
	CAFile     string `json:"caFile,omitempty"`
	CertFile   string `json:"certFile,omitempty"`
	KeyFile    string `json:"keyFile,omitempty"`
	TokenFile  string `json:"tokenFile,omitempty"`
}

// Contexts lists the contexts.
func (a *App) Contexts() error {
	_, file, err := a.contextsFile()
	if err != nil {
		return err
	}
	rows, t := []contextRow{}, table.Table{Head: []string{"CURRENT", "NAME", "ADDRESS", "SHOWS"}}
	if a.wide() {
		t.Head = append(t.Head, "AUTHORITY", "SERVER NAME")
	}
	for _, c := range file.Contexts {
		r := contextRow{c.Name, c.Name == file.Current, c.Address, c.ServerName, c.CAFile, c.CertFile, c.KeyFile, c.TokenFile}
		rows = append(rows, r)
		current := ""
		if r.Current {
			current = "*"
		}
		cells := table.Row(current, c.Name, c.Address, shows(c.Target))
		if a.wide() {
			cells = append(cells, table.Row(c.CAFile, c.ServerName)...)
		}
		t.Rows = append(t.Rows, cells)
	}
	if a.Output.ForPrograms() {
		return failure.Of("write contexts", output.Value(a.Stdout, a.Output, map[string]any{"contexts": rows}))
	}
	return a.print(t, fmt.Sprintf("There is no context; without one, %s is called. `remuda login` adds one.", connect.DefaultAddress))
}

// shows is what a caller shows, with the end of a certificate that can be read.
func shows(t connect.Target) string {
	switch {
	case t.TokenFile != "":
		return "token " + t.TokenFile
	case t.CertFile == "":
		return "nothing"
	}
	c, err := connect.ReadCertificate(t.CertFile)
	if err != nil {
		return t.CertFile + " (cannot be read)"
	}
	return fmt.Sprintf("%s until %s", c.Subject, c.NotAfter.UTC().Format(time.DateOnly))
}

// UseContext makes a context the current one.
func (a *App) UseContext(name string) error {
	return a.changeContexts(func(f *contexts.File) error { return f.Use(name) }, "Context "+name+" is the current one.")
}

// DeleteContext takes a context out of the file. Its certificates and tokens stay where they are.
func (a *App) DeleteContext(name string) error {
	return a.changeContexts(func(f *contexts.File) error { return f.Delete(name) }, "Context "+name+" is deleted; its files stay.")
}

func (a *App) changeContexts(change func(*contexts.File) error, done string) error {
	path, file, err := a.contextsFile()
	if err != nil {
		return err
	}
	if err := change(&file); err != nil {
		return err
	}
	if err := file.Save(path); err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.Stdout, done)
	return failure.Of("write answer", err)
}
