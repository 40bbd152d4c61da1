// Package inputs reads what a configuration names: certificates, keys, secrets, scripts, programs and directories. controld
// serve starts with what it reads, and config check reports what it finds wrong, so the two cannot come to differ.
package inputs

import (
	"context"
	"crypto/tls"
	"net/http"
	"os"
	"time"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/web"
)

// Inputs are what a configuration names, as far as controld needs it at start.
type Inputs struct {
	// TLS is nil for plaintext.
	TLS *tls.Config
	// Transport leads to GitHub, and Apps or Token are who calls there.
	Transport http.RoundTripper
	Apps      []github.App
	Token     github.TokenSource
	// Webhooks is nil when no deliveries are taken.
	Webhooks web.SecretSource
	// PreRunner and PostRelease are the scripts of pools, by name.
	PreRunner, PostRelease map[string][]byte
	// TracingAuthorities are trusted where spans go, as PEM, and TracingHeaders go with them.
	TracingAuthorities []byte
	TracingHeaders     map[string]lifecycle.Secret
	// Warnings are for what works now and will not, or is less safe than it seems.
	Warnings []string
}

// Load reads a configuration file and what it names. All that is wrong with both comes back at once, as a
// *strictyaml.Error. Secrets are read from the copies that systemd made, if it did ($CREDENTIALS_DIRECTORY).
func Load(path string) (*config.Config, *Inputs, error) {
	in := &Inputs{}
	c, err := config.Load(path, in.Rule)
	return c, in, err
}

// Rule is the rule of a configuration file that everything it names is there and right. It fills in.
func (in *Inputs) Rule(c *config.Config, root strictyaml.Place) {
	c.UseCredentials(os.Getenv(credentialsVariable))
	r := &reader{c: c, root: root, in: in, now: time.Now()}
	if c.ForDev {
		r.forDev()
		return
	}
	r.all()
}

// Of reads what a configuration names that is not as its file has it, such as that of controld dev. name is what made it.
func Of(name string, c *config.Config) (*Inputs, error) {
	in := &Inputs{}
	err := strictyaml.CheckRule(name, func(root strictyaml.Place) {
		(&reader{c: c, root: root, in: in, now: time.Now()}).all()
	})
	return in, err
}

// ForReading reads what a command needs that only looks at a fleet: who calls GitHub, and what hosts are made with.
func ForReading(name string, c *config.Config) (*Inputs, error) {
	in := &Inputs{}
	err := strictyaml.CheckRule(name, func(root strictyaml.Place) {
		r := &reader{c: c, root: root, in: in, now: time.Now()}
		r.github()
		r.scripts()
	})
	return in, err
}

// reader reads into in and reports problems at the places of the keys below root.
type reader struct {
	c    *config.Config
	root strictyaml.Place
	in   *Inputs
	now  time.Time
}

func (r *reader) all() {
	r.tls()
	r.github()
	r.webhooks()
	r.services()
	r.page()
	r.tracing()
	r.scripts()
	r.local()
}

// forDev leaves out what controld dev has of its own.
func (r *reader) forDev() {
	if r.root.At("webhooks").Written() {
		r.webhooks()
	}
	r.services()
	r.tracing()
	r.scripts()
}

// webhooks reads the secrets that deliveries are signed with.
func (r *reader) webhooks() {
	w := r.c.Webhooks
	if w == nil {
		return
	}
	at := r.root.At("webhooks")
	if w.SecretEnv != "" {
		r.in.Webhooks = web.SecretVariable(w.SecretEnv)
		if _, err := r.in.Webhooks(); err != nil {
			at.At("secret_env").Errorf("%v", err)
		}
		return
	}
	r.in.Webhooks = web.SecretFile(w.SecretFile)
	if there(at.At("secret_file"), w.SecretFile) {
		if _, err := r.in.Webhooks(); err != nil {
			at.At("secret_file").Errorf("%v", err)
		}
	}
}

// maxScript is far more than the user data of an instance takes, in bytes.
const maxScript = 1 << 20

// scripts reads those of the pools.
func (r *reader) scripts() {
	r.in.PreRunner, r.in.PostRelease = map[string][]byte{}, map[string][]byte{}
	for name, p := range r.c.Pools {
		for _, script := range []struct {
			key, path string
			into      map[string][]byte
		}{
			{"pre_runner", p.PreRunner, r.in.PreRunner}, {"post_release", p.PostRelease, r.in.PostRelease},
		} {
			if script.path == "" {
				continue
			}
			if text := read(r.root.At("pools", name, script.key), script.path, "a script", maxScript); text != nil {
				script.into[name] = text
			}
		}
	}
}

// token asks a source once, so that a wrong one is reported at start and not at the first call.
func token(at strictyaml.Place, source github.TokenSource) {
	if _, err := source(context.Background()); err != nil { // it reads a file or a variable, and does not wait
		at.Errorf("%v", err)
	}
}
