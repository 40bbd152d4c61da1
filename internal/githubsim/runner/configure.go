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
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
	"github.com/remuda-ci/remuda/internal/githubsim/runner/runnerfiles"
)

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

// configure registers the runner and writes its files (actions/runner 2.336,
// src/Runner.Listener/Configuration/ConfigurationManager.cs:124-493). It takes as long as the server says that config.sh takes.
func configure(root string, in inputs, out, errOut io.Writer) error {
	begun := time.Now()
	if _, _, err := runnerfiles.Load(root); !errors.Is(err, runnerfiles.ErrNotConfigured) {
		return message("Cannot configure the runner because it is already configured. To reconfigure the runner, run 'config.cmd remove' or './config.sh remove' first.")
	}
	for _, name := range []string{"url", "token"} {
		if in.values[name] == "" {
			return invalidInput(name)
		}
	}
	name := in.values["name"]
	if name == "" {
		var err error
		if name, err = os.Hostname(); err != nil {
			return fmt.Errorf("name the runner: %w", err)
		}
	}
	g, err := newGitHub(in.values["url"], in.values["token"], errOut)
	if err != nil {
		return err
	}
	fmt.Fprint(out, "\n# Authentication\n\n")
	adminFlow, err := g.authorize(in, out)
	if err != nil {
		return err
	}
	reg, err := g.register(in, name, out)
	if err != nil {
		return err
	}
	time.Sleep(time.Until(begun.Add(reg.Times.Configure)))
	files, err := runnerfiles.Files(runnerfiles.Settings{
		AgentID: reg.ID, AgentName: name, ServerURL: g.base, GitHubURL: in.values["url"], WorkFolder: cmp.Or(in.values["work"], "_work"),
		Ephemeral: in.flags["ephemeral"], DisableUpdate: in.flags["disableupdate"], UseV2Flow: adminFlow, UseRunnerAdminFlow: adminFlow,
		Times: reg.Times,
	}, reg.Credential)
	if err != nil {
		return err
	}
	if err := runnerfiles.Save(root, files); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, "svc.sh"), []byte(serviceScript), 0o755); err != nil {
		return fmt.Errorf("generate service script: %w", err)
	}
	fmt.Fprint(out, "√ Settings Saved.\n\n")
	return nil
}

// authorize trades the token for the flow to use, and checks the runner group (ConfigurationManager.cs:152-158,218-252).
func (g *gitHub) authorize(in inputs, out io.Writer) (adminFlow bool, err error) {
	if in.flags["hosted"] {
		return true, nil
	}
	a, err := g.authorized(protocol.EventRegister)
	if err != nil {
		return false, err
	}
	fmt.Fprint(out, "√ Connected to GitHub\n\n# Runner Registration\n\n")
	wanted := in.values["runnergroup"]
	known := func(name string) bool { return strings.EqualFold(name, wanted) }
	if wanted != "" && !slices.ContainsFunc(a.Groups, known) {
		return false, message(fmt.Sprintf("Could not find any self-hosted runner group named %q.", wanted))
	}
	return a.AdminFlow, nil
}

func (g *gitHub) authorized(event string) (a protocol.Authorized, err error) {
	err = g.do("POST "+g.api("actions/runner-registration"), protocol.PathAuthorize, protocol.Authorize{URL: g.url, Event: event}, &a)
	return a, err
}

// register makes the registration (RunnerDotcomServer.cs:69-104).
func (g *gitHub) register(in inputs, name string, out io.Writer) (reg protocol.Registered, err error) {
	// ConfigurationManager.cs 663-666 and 697-700
	if in.flags["no-default-labels"] && len(in.list("labels")) == 0 {
		return reg, message("Disabling default labels via --no-default-labels without specifying --labels is not supported")
	}
	q := protocol.Register{
		URL: g.url, Name: name, Labels: in.list("labels"), Group: in.values["runnergroup"], Replace: in.flags["replace"],
		Ephemeral: in.flags["ephemeral"], Hosted: in.flags["hosted"], NoDefaultLabels: in.flags["no-default-labels"], Version: in.values["version"],
	}
	if err = g.do("Post "+g.api("actions/runners/register"), protocol.PathRegister, q, &reg); err != nil {
		if codeOf(err) == http.StatusConflict {
			err = message("A runner exists with the same name " + name + ".")
		}
		return reg, err
	}
	fmt.Fprint(out, "√ Runner successfully added\n√ Runner connection is good\n\n# Runner settings\n\n")
	return reg, nil
}

// unconfigure takes the registration off the server and then deletes the files. Without .runner it takes nothing off the server, and
// says so, and succeeds (ConfigurationManager.cs:527-618).
func unconfigure(root string, in inputs, out, errOut io.Writer) error {
	if in.flags["local"] {
		return deleteFiles(root, out)
	}
	begun := time.Now()
	fmt.Fprint(out, "\n# Runner removal\n\n")
	settings, _, err := runnerfiles.Load(root)
	defer func() { time.Sleep(time.Until(begun.Add(settings.Times.Configure))) }()
	missing := errors.Is(err, runnerfiles.ErrNotConfigured)
	if err == nil {
		err = removeFromServer(settings, in.values["token"], out, errOut)
	}
	switch {
	case missing:
		fmt.Fprintln(out, "Cannot connect to server, because config files are missing. Skipping removing runner from the server.")
	case err != nil:
		fmt.Fprintln(errOut, "Failed: Removing runner from the server")
		return err
	}
	return deleteFiles(root, out)
}

// deleteFiles deletes the runner's configuration, also where there is none (ConfigurationManager.cs:495-525).
func deleteFiles(root string, out io.Writer) error {
	for _, name := range []string{runnerfiles.Credentials, runnerfiles.RSAParams, runnerfiles.Runner} {
		there, err := runnerfiles.Delete(root, name)
		switch {
		case err != nil:
			return fmt.Errorf("remove %s: %w", name, err)
		case name == runnerfiles.RSAParams: // it goes with the credentials
		case there:
			fmt.Fprintln(out, "√ Removed "+name)
		default:
			fmt.Fprintln(out, "Does not exist. Skipping Removing "+name)
		}
	}
	return nil
}

// removeFromServer removes the registration in the flow that it was made in. In the runner-admin flow a runner that is already gone is
// an error, as any other 404; only the old flow looks for it first (ConfigurationManager.cs:560-599).
func removeFromServer(s runnerfiles.Settings, token string, out, errOut io.Writer) error {
	if token == "" {
		return invalidInput("token")
	}
	g, err := newGitHub(s.GitHubURL, token, errOut)
	if err != nil {
		return err
	}
	q := protocol.Remove{URL: s.GitHubURL, ID: s.AgentID}
	if !s.UseRunnerAdminFlow {
		if err := g.removeOld(q, out); err != nil {
			return err
		}
	} else if err := g.do(fmt.Sprintf("Delete %s/%d", g.runners(), s.AgentID), protocol.PathRemove, q, nil); err != nil {
		return err
	}
	fmt.Fprintln(out, "\n√ Runner removed successfully")
	return nil
}

// removeOld removes a registration through the service of before the runner-admin flow. The refusals of that one are not printed.
func (g *gitHub) removeOld(q protocol.Remove, out io.Writer) error {
	if _, err := g.authorized(protocol.EventRemove); err != nil {
		return err
	}
	_, err := g.call(context.Background(), callTime, http.MethodPost, protocol.PathRemove, nil, q, nil)
	if codeOf(err) == http.StatusNotFound {
		fmt.Fprintln(out, "Does not exist. Skipping Removing runner from the server")
		return nil
	}
	return err
}
