package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
	"github.com/remuda-ci/remuda/internal/githubsim/runner/runnerfiles"
)

// configureTime is how long configure and remove try to reach GitHub.
const configureTime = 10 * time.Second

// serverOf is the address of the server that a repository or organization URL is on.
func serverOf(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme == "" || u.Host == "" {
		return "", invalidInput("url")
	}
	return u.Scheme + "://" + u.Host, nil
}

func invalidInput(name string) error {
	return message("Invalid configuration provided for " + name + ". Terminating unattended configuration.")
}

// configure registers the runner and writes its files. It takes as long as the server says that config.sh takes.
func configure(root string, in inputs, out io.Writer) error {
	begun := time.Now()
	if _, _, err := runnerfiles.Load(root); !errors.Is(err, runnerfiles.ErrNotConfigured) {
		return message("Cannot configure the runner because it is already configured. To reconfigure the runner, run './config.sh remove' first.")
	}
	for _, name := range []string{"url", "token"} {
		if in.values[name] == "" {
			return invalidInput(name)
		}
	}
	server, err := serverOf(in.values["url"])
	if err != nil {
		return err
	}
	name := in.values["name"]
	if name == "" {
		if name, err = os.Hostname(); err != nil {
			return fmt.Errorf("name the runner: %w", err)
		}
	}
	// actions/runner 2.336, src/Runner.Listener/Configuration/ConfigurationManager.cs 663-666 and 697-700
	if in.flags["no-default-labels"] && len(in.list("labels")) == 0 {
		return message("Disabling default labels via --no-default-labels without specifying --labels is not supported")
	}
	fmt.Fprint(out, "\n# Authentication\n\n")
	var reg protocol.Registered
	q := protocol.Register{
		URL: in.values["url"], Name: name, Labels: in.list("labels"), Replace: in.flags["replace"], Ephemeral: in.flags["ephemeral"],
		Hosted: in.flags["hosted"], NoDefaultLabels: in.flags["no-default-labels"],
	}
	if err := once(server, in.values["token"], protocol.PathRegister, q, &reg); err != nil {
		return fmt.Errorf("register runner %s: %w", name, err)
	}
	time.Sleep(time.Until(begun.Add(reg.Times.Configure)))
	fmt.Fprint(out, "√ Connected to GitHub\n\n# Runner Registration\n\n√ Runner successfully added\n√ Runner connection is good\n\n# Runner settings\n\n")
	files, err := runnerfiles.Files(runnerfiles.Settings{
		AgentID: reg.ID, AgentName: name, ServerURL: server, GitHubURL: in.values["url"], WorkFolder: cmp.Or(in.values["work"], "_work"),
		Ephemeral: in.flags["ephemeral"], DisableUpdate: in.flags["disableupdate"], Times: reg.Times,
	}, reg.Credential)
	if err != nil {
		return err
	}
	if err := runnerfiles.Save(root, files); err != nil {
		return err
	}
	fmt.Fprint(out, "√ Settings Saved.\n\n")
	return nil
}

// once makes one call of configure or remove, with patience for a server that is not there yet.
func once(server, secret, path string, q, into any) error {
	c := newClient(server, secret)
	return insist(context.Background(), configureTime, func() error {
		_, err := c.call(context.Background(), callTime, http.MethodPost, path, nil, q, into)
		return err
	})
}

// unconfigure takes the registration off the server and then deletes the files. As in actions/runner, without .runner it takes
// nothing off the server, and says so, and succeeds.
func unconfigure(root string, in inputs, out io.Writer) error {
	begun := time.Now()
	fmt.Fprint(out, "\n# Runner removal\n\n")
	settings, _, err := runnerfiles.Load(root)
	defer func() { time.Sleep(time.Until(begun.Add(settings.Times.Configure))) }()
	missing := errors.Is(err, runnerfiles.ErrNotConfigured)
	if err == nil && !in.flags["local"] {
		err = removeFromServer(settings, in.values["token"], out)
	}
	switch {
	case missing:
		fmt.Fprintln(out, "Cannot connect to server, because config files are missing. Skipping removing runner from the server.")
	case err != nil:
		fmt.Fprintln(out, "Failed: Removing runner from the server")
		return err
	}
	for _, name := range []string{runnerfiles.Credentials, runnerfiles.RSAParams, runnerfiles.Runner} {
		there, err := runnerfiles.Delete(root, name)
		switch {
		case err != nil:
			fmt.Fprintln(out, "Failed: Removing "+name)
			return err
		case there:
			fmt.Fprintln(out, "√ Removed "+name)
		default:
			fmt.Fprintln(out, "Does not exist. Skipping Removing "+name)
		}
	}
	return nil
}

func removeFromServer(s runnerfiles.Settings, token string, out io.Writer) error {
	if token == "" {
		return invalidInput("token")
	}
	err := once(s.ServerURL, token, protocol.PathRemove, protocol.Remove{URL: s.GitHubURL, ID: s.AgentID}, nil)
	if codeOf(err) == http.StatusNotFound {
		fmt.Fprintln(out, "Does not exist. Skipping Removing runner from the server")
		return nil
	}
	if err == nil {
		fmt.Fprintln(out, "\n√ Runner removed successfully")
	}
	return err
}
