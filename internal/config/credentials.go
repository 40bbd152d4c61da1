package config

import (
	"path/filepath"
	"strings"
)

// CredentialsDir is where the secrets and certificates of a machine are. With the package only root reads it.
const CredentialsDir = "/etc/remuda/credentials"

// credentialID is the id under which controld.service loads that directory: the copy of NAME is remuda_NAME.
const credentialID = "remuda_"

// UseCredentials replaces the paths of files in CredentialsDir by those of the copies that systemd made for this process in
// dir ($CREDENTIALS_DIRECTORY). With an empty dir it changes nothing: the files are read where they are.
func (c *Config) UseCredentials(dir string) {
	if dir == "" {
		return
	}
	c.eachFile(func(path *string) {
		if name, ok := strings.CutPrefix(*path, CredentialsDir+"/"); ok {
			*path = filepath.Join(dir, credentialID+name)
		}
	})
}

// OutsideCredentials are the files that are named and are not in CredentialsDir.
func (c *Config) OutsideCredentials() (paths []string) {
	c.eachFile(func(path *string) {
		if *path != "" && !strings.HasPrefix(*path, CredentialsDir+"/") {
			paths = append(paths, *path)
		}
	})
	return paths
}

// eachFile calls use for each key that ends in _file, written or not.
func (c *Config) eachFile(use func(path *string)) {
	if t := c.GRPC.TLS; t != nil {
		use(&t.CertFile)
		use(&t.KeyFile)
		use(&t.ClientCAFile)
	}
	if p := c.Page; p != nil {
		use(&p.TokenFile)
		if o := p.OIDC; o != nil {
			use(&o.ClientSecretFile)
			use(&o.SessionKeyFile)
		}
	}
	use(&c.Tracing.CAFile)
	use(&c.Tracing.HeadersFile)
	use(&c.GitHub.CAFile)
	use(&c.GitHub.TokenFile)
	for i := range c.GitHub.Apps {
		use(&c.GitHub.Apps[i].PrivateKeyFile)
	}
	if w := c.Webhooks; w != nil {
		use(&w.SecretFile)
	}
	for name, s := range c.Services {
		use(&s.WorkerTokenFile)
		use(&s.NudgeTokenFile)
		if q := s.Queue.PostgREST; q != nil {
			use(&q.TokenFile)
		}
		c.Services[name] = s
	}
}

// CredentialOf returns the file in CredentialsDir that a path in dir is the copy of; empty: of no file there.
func CredentialOf(path, dir string) string {
	if name, ok := strings.CutPrefix(path, filepath.Join(dir, credentialID)); ok && dir != "" {
		return filepath.Join(CredentialsDir, name)
	}
	return ""
}
