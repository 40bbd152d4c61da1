package inputs

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/server"
)

// Credentials lists the certificates and keys that a configuration names as they are now, without what is in them. readAt is when the process has
// read what it reads once.
func Credentials(c *config.Config, readAt time.Time) []server.Credential {
	l := &credentials{readAt: readAt, copies: os.Getenv(credentialsVariable)}
	l.grpc(c)
	l.github(c)
	if w := c.Webhooks; w != nil {
		l.file("webhooks.secret_file", w.SecretFile, reloaded)
		l.variable("webhooks.secret_env", w.SecretEnv)
	}
	l.page(c)
	l.certificate("tracing.ca_file", c.Tracing.CAFile, readOnce)
	l.file("tracing.headers_file", c.Tracing.HeadersFile, readOnce)
	for _, name := range slices.Sorted(maps.Keys(c.Services)) {
		s, key := c.Services[name], "services."+name
		l.file(key+".worker_token_file", s.WorkerTokenFile, reloaded)
		l.file(key+".nudge_token_file", s.NudgeTokenFile, reloaded)
		if q := s.Queue.PostgREST; q != nil {
			l.file(key+".queue.postgrest.token_file", q.TokenFile, reloaded)
		}
	}
	return l.all
}

// Whether a file is read again when it changes.
const (
	readOnce = false
	reloaded = true
)

// credentials is the list while it is made.
type credentials struct {
	readAt time.Time
	// copies is the directory of systemd's copies of files; empty: there are none.
	copies string
	all    []server.Credential
}

func (l *credentials) grpc(c *config.Config) {
	if t := c.GRPC.TLS; t != nil {
		l.certificate("grpc.tls.cert_file", t.CertFile, reloaded)
		l.file("grpc.tls.key_file", t.KeyFile, reloaded)
		l.certificate("grpc.tls.client_ca_file", t.ClientCAFile, readOnce)
	}
}

func (l *credentials) github(c *config.Config) {
	g := c.GitHub
	l.certificate("github.ca_file", g.CAFile, readOnce)
	l.file("github.token_file", g.TokenFile, reloaded)
	l.variable("github.token_env", g.TokenEnv)
	for i, a := range g.Apps {
		key := fmt.Sprintf("github.apps[%d]", i)
		l.file(key+".private_key_file", a.PrivateKeyFile, readOnce)
		l.variable(key+".private_key_env", a.PrivateKeyEnv)
	}
}

func (l *credentials) page(c *config.Config) {
	p := c.Page
	if p == nil {
		return
	}
	l.file("page.token_file", p.TokenFile, reloaded)
	if o := p.OIDC; o != nil {
		l.file("page.oidc.client_secret_file", o.ClientSecretFile, reloaded)
		l.file("page.oidc.session_key_file", o.SessionKeyFile, reloaded)
	}
}

// variable adds an environment variable. That of a process does not change.
func (l *credentials) variable(setting, name string) {
	if name != "" {
		l.all = append(l.all, server.Credential{Setting: setting, Source: "$" + name, ReadAt: l.readAt})
	}
}

// file adds a file. Of a copy of systemd's neither the file nor its time can be seen, and a change of the file does not change it.
func (l *credentials) file(setting, path string, again bool) {
	if path == "" {
		return
	}
	c := server.Credential{Setting: setting, Source: path, Reloaded: again, ReadAt: l.readAt}
	info, err := os.Stat(path)
	switch source := config.CredentialOf(path, l.copies); {
	case source != "":
		c.Source, c.Reloaded = source, readOnce
	case err == nil:
		c.ChangedAt = info.ModTime()
	}
	if err != nil {
		c.Problem = Problem(path, err)
	}
	l.all = append(l.all, c)
}

// certificate adds a file of certificates.
func (l *credentials) certificate(setting, path string, again bool) {
	if path == "" {
		return
	}
	l.file(setting, path, again)
	c := &l.all[len(l.all)-1]
	if c.Problem != "" {
		return
	}
	first, err := firstToExpire(path)
	if err != nil {
		c.Problem = fmt.Sprintf("%s has a certificate that cannot be read: %v", path, err)
		return
	}
	c.Subject, c.ExpiresAt = first.Subject.String(), first.NotAfter
}

// firstToExpire is that certificate of a file.
func firstToExpire(path string) (first *x509.Certificate, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		if first == nil || c.NotAfter.Before(first.NotAfter) {
			first = c
		}
	}
	if first == nil {
		return nil, fmt.Errorf("it holds no certificate")
	}
	return first, nil
}
