package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/remuda-ci/remuda/internal/cli"
	"github.com/remuda-ci/remuda/internal/cli/failure"
)

func newLogin(app *cli.App) *cobra.Command {
	var f cli.LoginFlags
	c := &cobra.Command{
		Use: "login NAME --address HOST:PORT", Short: "Try a controld and keep it as the current context", GroupID: groupSetUp, Args: cobra.ExactArgs(1),
		Long: `login tries a controld and keeps it as the current context. Certificates and tokens stay in their files, which the context names.
Without --ca the certificate of controld is checked against the authorities of the system; on loopback, without any of these
flags, the connection is plaintext.`,
		Example: "  remuda login prod --address controld.example.com:7443 --ca ca/ca.pem --cert ca/alice.crt --key ca/alice.key",
		RunE:    func(c *cobra.Command, args []string) error { return failure.Of("", app.Login(c.Context(), args[0], f)) },
	}
	c.Flags().StringVar(&f.CA, "ca", "", "the `FILE` with the authority of controld's certificate")
	c.Flags().StringVar(&f.Cert, "cert", "", "the `FILE` with the client certificate of an operator")
	c.Flags().StringVar(&f.Key, "key", "", "the `FILE` with its key")
	c.Flags().StringVar(&f.ServerName, "server-name", "", "the `NAME` in controld's certificate, where it is not the host of the address")
	c.Flags().StringVar(&f.TokenFile, "token-file", "", "the `FILE` with an ID token, instead of a certificate; it is read for each call")
	return c
}

func newContext(app *cli.App) *cobra.Command {
	c := &cobra.Command{Use: "context", Short: "List, choose and delete contexts", GroupID: groupSetUp, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return failure.Of("", c.Help()) }}
	c.AddCommand(
		&cobra.Command{Use: "list", Short: "List the contexts", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return failure.Of("", app.Contexts()) }},
		&cobra.Command{Use: "use NAME", Short: "Make a context the current one", Args: cobra.ExactArgs(1), ValidArgsFunction: completeContexts(app),
			RunE: func(_ *cobra.Command, args []string) error { return failure.Of("", app.UseContext(args[0])) }},
		&cobra.Command{Use: "delete NAME", Short: "Delete a context; the files that it names stay", Args: cobra.ExactArgs(1), ValidArgsFunction: completeContexts(app),
			RunE: func(_ *cobra.Command, args []string) error { return failure.Of("", app.DeleteContext(args[0])) }})
	return c
}

func newDoctor(app *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Check the connection, certificates, keys, versions, readiness, permission and clocks", GroupID: groupSetUp, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return failure.Of("", app.Doctor(c.Context())) },
	}
}

func newMan() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use: "man --dir DIR", Short: "Write a man page for each command", GroupID: groupSetUp, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if dir == "" {
				return failure.Misused("--dir is required")
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return failure.Of("write man pages", err)
			}
			c.Root().DisableAutoGenTag = true // the same command gives the same pages
			header := &doc.GenManHeader{Section: "1", Source: "remuda", Manual: "Remuda"}
			return failure.Of(fmt.Sprintf("write man pages to %s", dir), doc.GenManTree(c.Root(), header, dir))
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "the `DIR`, which is made if it is missing")
	return c
}

// completeContexts completes the name of a context.
func completeContexts(app *cli.App) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return app.ContextNames(), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeHosts completes the ids of hosts.
func completeHosts(app *cli.App) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return app.HostNames(c.Context()), cobra.ShellCompDirectiveNoFileComp
	}
}

// completePools completes the name of a pool.
func completePools(app *cli.App) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return app.PoolNames(c.Context()), cobra.ShellCompDirectiveNoFileComp
	}
}
