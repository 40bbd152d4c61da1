package config

import (
	"net/url"
	"regexp"
	"time"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
)

// GitHub is the API that gives out tokens and knows the registrations. It is
// called with one of TokenFile, TokenEnv and Apps.
type GitHub struct {
	// URL is the base of the API: https://api.github.com, or https://HOST/api/v3.
	URL string `yaml:"url"`
	// CAFile has the authorities, beside the system's, of the server's
	// certificate; empty: the system's alone.
	CAFile string `yaml:"ca_file"`
	// Scope is whose runners hosts become.
	Scope Scope `yaml:"scope"`
	// RunnerGroup is the name of the group that runners of an organization join; empty: Default.
	RunnerGroup string `yaml:"runner_group"`
	// TokenFile is read at each call, so the token may be replaced.
	TokenFile string `yaml:"token_file"`
	// TokenEnv names the environment variable that holds the token.
	TokenEnv string `yaml:"token_env"`
	// Apps spread the calls: each has a budget of its own.
	Apps []GitHubApp `yaml:"apps"`
	// Repositories are swept for registrations whose host is gone; each host's
	// own registration is removed without it.
	Repositories []string `yaml:"repositories"`
	// CheckRunsAfter is for how long something of a run waits for hosts before a check run on its commit says why; 0: there are none.
	CheckRunsAfter time.Duration `yaml:"check_runs_after"`
}

// Scope is whose runners hosts become.
type Scope string

// The scopes. At organization scope a host can serve each repository of the
// organization that its runner group admits.
const (
	ScopeRepository   Scope = "repository"
	ScopeOrganization Scope = "organisation"
)

// Scopes lists every scope.
var Scopes = []Scope{ScopeRepository, ScopeOrganization}

// GitHubApp is a GitHub App. It has one of AppID and ClientID, and one of PrivateKeyFile and PrivateKeyEnv.
type GitHubApp struct {
	AppID    int    `yaml:"app_id"`
	ClientID string `yaml:"client_id"`
	// PrivateKeyFile is a PEM file, read at start.
	PrivateKeyFile string `yaml:"private_key_file"`
	// PrivateKeyEnv names the environment variable that holds the PEM text.
	PrivateKeyEnv string `yaml:"private_key_env"`
}

// maxAppID is far above the ids that GitHub gives: they have 7 digits today.
const maxAppID = 1<<31 - 1

var (
	clientID    = regexp.MustCompile(`^Iv[A-Za-z0-9._-]{1,62}$`)
	runnerGroup = regexp.MustCompile(`^[^\x00-\x1f\x7f]{1,128}$`)
)

func (g GitHub) validate(at strictyaml.Place) {
	baseURL(at.At("url"), g.URL, "the base URL of an API; write https://api.github.com or https://HOST/api/v3", "would send the token in plaintext")
	g.validateCA(at.At("ca_file"))
	switch group := at.At("runner_group"); {
	case g.RunnerGroup == "":
	case g.Scope != ScopeOrganization:
		group.Errorf("means nothing at repository scope, where there are no groups; leave it out, or write scope: organisation")
	case !runnerGroup.MatchString(g.RunnerGroup):
		group.Errorf("is %.80q; write the name of a runner group, 1 to 128 characters on one line", g.RunnerGroup)
	}
	g.validateCredentials(at)
	words(at.At("repositories"), g.Repositories, repositoryName, "a repository as owner/name")
	switch after := at.At("check_runs_after"); {
	case g.CheckRunsAfter == 0:
	case len(g.Apps) == 0:
		after.Errorf("means nothing without apps: GitHub takes check runs of Apps alone; add apps, or leave it out")
	default:
		after.Between(g.CheckRunsAfter, 10*time.Second, 24*time.Hour)
	}
}

func (g GitHub) validateCA(at strictyaml.Place) {
	u, err := url.Parse(g.URL)
	switch {
	case g.CAFile == "":
	case err == nil && u.Scheme == "http":
		at.Errorf("means nothing with a url of http; leave it out")
	default:
		at.Path(g.CAFile)
	}
}

// validateCredentials wants exactly one kind of them.
func (g GitHub) validateCredentials(at strictyaml.Place) {
	var first string
	for _, given := range []struct {
		key string
		is  bool
	}{{"token_file", g.TokenFile != ""}, {"token_env", g.TokenEnv != ""}, {"apps", len(g.Apps) > 0}} {
		switch {
		case given.is && first != "":
			at.At(given.key).Errorf("is there beside %s; write one of them", first)
		case given.is:
			first = given.key
		}
	}
	if first == "" {
		at.Errorf("has no token; write token_file with a path, token_env with the name of a variable, or apps")
	}
	at.At("token_file").OptionalPath(g.TokenFile)
	variable(at.At("token_env"), g.TokenEnv, "GITHUB_TOKEN")
	few(at.At("apps"), len(g.Apps))
	seen := map[GitHubApp]bool{}
	for i, app := range g.Apps {
		item := at.At("apps").Item(i)
		app.validate(item)
		who := GitHubApp{AppID: app.AppID, ClientID: app.ClientID}
		if seen[who] {
			item.Errorf("is here twice; remove one")
		}
		seen[who] = true
	}
}

func (a GitHubApp) validate(at strictyaml.Place) {
	switch id := at.At("app_id"); {
	case a.ClientID == "" && a.AppID == 0 && !id.Written():
		at.Errorf("has neither app_id nor client_id; write one of them")
	case a.ClientID == "":
		id.Number(a.AppID, 1, maxAppID)
	case a.AppID != 0:
		at.At("client_id").Errorf("is there beside app_id; write one of them")
	case !clientID.MatchString(a.ClientID):
		// It is not quoted: it may be the client's secret.
		at.At("client_id").Errorf("is not the client id of an App; write one such as Iv23liAbCdEf01234567")
	}
	switch {
	case a.PrivateKeyFile == "" && a.PrivateKeyEnv == "":
		at.Errorf("has no private key; write private_key_file with a path or private_key_env with the name of a variable")
	case a.PrivateKeyFile != "" && a.PrivateKeyEnv != "":
		at.At("private_key_env").Errorf("is there beside private_key_file; write one of them")
	case a.PrivateKeyFile != "":
		at.At("private_key_file").Path(a.PrivateKeyFile)
	}
	variable(at.At("private_key_env"), a.PrivateKeyEnv, "GITHUB_APP_KEY")
}

// variable checks the name of an environment variable, if there is one. It is
// not quoted: it may be what the variable should hold.
func variable(at strictyaml.Place, name, such string) {
	if name != "" && !variableName.MatchString(name) {
		at.Errorf("is not the name of an environment variable; write one such as %s", such)
	}
}

// Webhooks is what GitHub's deliveries are signed with. It has one of SecretFile and SecretEnv.
type Webhooks struct {
	// SecretFile holds a secret in each line. All of them are valid, so that one may be
	// replaced by the next. It is read at each delivery.
	SecretFile string `yaml:"secret_file"`
	// SecretEnv names the environment variable that holds the same.
	SecretEnv string `yaml:"secret_env"`
}

func (w Webhooks) validate(at strictyaml.Place) {
	switch {
	case w.SecretFile == "" && w.SecretEnv == "":
		at.Errorf("has no secret; write secret_file with a path or secret_env with the name of a variable")
	case w.SecretFile != "" && w.SecretEnv != "":
		at.At("secret_env").Errorf("is there beside secret_file; remove one of them")
	case w.SecretFile != "":
		at.At("secret_file").Path(w.SecretFile)
	case !variableName.MatchString(w.SecretEnv):
		// The value is not repeated: it may be the secret itself.
		at.At("secret_env").Errorf("is not the name of an environment variable; write a name such as WEBHOOK_SECRET")
	}
}
