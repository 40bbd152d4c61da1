package inputs_test

import (
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/inputs"
	"github.com/remuda-ci/remuda/internal/server"
)

// named fills every key of a configuration that names a file or a variable with a secret in it, and returns what each has by its name in the file.
func named(v reflect.Value, key string, all map[string]string) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		named(v.Elem(), key, all)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			named(v.Index(0), key+"[0]", all)
		}
	case reflect.Map:
		if v.Type().Elem().Kind() == reflect.Struct {
			one := reflect.New(v.Type().Elem()).Elem()
			named(one, key+".film", all)
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(reflect.ValueOf("film"), one)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Tag.Get("yaml"); name != "" {
				named(v.Field(i), strings.TrimPrefix(key+"."+name, "."), all)
			}
		}
	case reflect.String:
		switch {
		case strings.HasSuffix(key, "_file"):
			v.SetString("/none/" + key)
			all[key] = "/none/" + key
		case strings.HasSuffix(key, "_env"):
			v.SetString("SECRET")
			all[key] = "$SECRET"
		}
	}
}

// TestEveryCredentialIsListed: each key that names a file or a variable is there, with its source.
func TestEveryCredentialIsListed(t *testing.T) {
	c, want, got := &config.Config{}, map[string]string{}, map[string]string{}
	named(reflect.ValueOf(c).Elem(), "", want)
	for _, one := range inputs.Credentials(c, time.Now()) {
		got[one.Setting] = one.Source
		if file := strings.HasSuffix(one.Setting, "_file"); file != strings.Contains(one.Problem, "does not exist") {
			t.Errorf("%s: the problem is %q", one.Setting, one.Problem)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 15 {
		t.Errorf("settings and their sources (-configuration +list):\n%s", diff)
	}
}

// TestEveryCredentialCanBeRotated: the operator's table has each setting, and says whether a restart is needed.
func TestEveryCredentialCanBeRotated(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Rotate a key\n")
	table, _, _ = strings.Cut(table, "\n### ")
	restart := map[string]string{}
	for row := range strings.Lines(table) {
		if cells := strings.Split(row, " | "); len(cells) == 3 {
			for setting := range strings.SplitSeq(strings.Trim(cells[0], "| "), ", ") {
				restart[strings.Trim(setting, "`")] = strings.Trim(cells[2], "| \n")
			}
		}
	}
	c := &config.Config{}
	named(reflect.ValueOf(c).Elem(), "", map[string]string{})
	for _, one := range inputs.Credentials(c, time.Now()) {
		setting := strings.NewReplacer("[0]", "[]", "services.film", "services.NAME").Replace(one.Setting)
		if want := map[bool]string{true: "no", false: "yes"}[one.Reloaded]; restart[setting] != want {
			t.Errorf("%s: the table says %q to a restart, want %q", setting, restart[setting], want)
		}
	}
}

// TestCredentials: what is renewed while controld runs, and what waits for a restart.
func TestCredentials(t *testing.T) {
	p, started := newPlace(t), time.Now().Add(-time.Hour).Truncate(time.Second)
	p.certificate(func(c *x509.Certificate) { c.NotAfter = started.Add(48 * time.Hour).UTC() })
	p.write("broken.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	for name, at := range map[string]time.Time{"token": started.Add(time.Minute), "tls.crt": started.Add(-time.Minute), "tls.key": started.Add(time.Minute)} {
		if err := os.Chtimes(filepath.Join(p.dir, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	copies := t.TempDir()
	if err := os.WriteFile(filepath.Join(copies, "remuda_page-tokens"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CREDENTIALS_DIRECTORY", copies)
	c := &config.Config{
		GRPC:     config.GRPC{TLS: &config.TLS{CertFile: p.dir + "/tls.crt", ClientCAFile: p.dir + "/tls.crt"}},
		GitHub:   config.GitHub{TokenFile: p.dir + "/token", CAFile: p.dir + "/broken.pem", Apps: []config.GitHubApp{{PrivateKeyFile: p.dir + "/tls.key", PrivateKeyEnv: ""}}},
		Page:     &config.Page{TokenFile: copies + "/remuda_page-tokens"},
		Webhooks: &config.Webhooks{SecretEnv: "WEBHOOK_SECRET"},
	}
	type seen struct {
		Source, Subject, Problem string
		Changed, Expires         time.Duration // since the start; 0: it is not said
		Reloaded, Outdated       bool
	}
	since := func(at time.Time) time.Duration {
		if at.IsZero() {
			return 0
		}
		return at.Sub(started)
	}
	got := map[string]seen{}
	for _, one := range inputs.Credentials(c, started) {
		changed := since(one.ChangedAt)
		if one.Setting == "github.ca_file" {
			changed = 0 // it was written just now
		}
		got[one.Setting] = seen{one.Source, one.Subject, problemOf(one), changed, since(one.ExpiresAt), one.Reloaded, one.Outdated()}
	}
	if diff := cmp.Diff(map[string]seen{
		"grpc.tls.cert_file":              {p.dir + "/tls.crt", "CN=controld", "", -time.Minute, 48 * time.Hour, true, false},
		"grpc.tls.client_ca_file":         {p.dir + "/tls.crt", "CN=controld", "", -time.Minute, 48 * time.Hour, false, false},
		"github.ca_file":                  {p.dir + "/broken.pem", "", "has a certificate that cannot be read", 0, 0, false, true},
		"github.token_file":               {p.dir + "/token", "", "", time.Minute, 0, true, false},
		"github.apps[0].private_key_file": {p.dir + "/tls.key", "", "", time.Minute, 0, false, true},
		"webhooks.secret_env":             {"$WEBHOOK_SECRET", "", "", 0, 0, false, false},
		"page.token_file":                 {"/etc/remuda/credentials/page-tokens", "", "", 0, 0, false, false},
	}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if text := fmt.Sprintf("%+v", inputs.Credentials(c, started)); strings.Contains(text, "word") || strings.Contains(text, "PRIVATE") {
		t.Errorf("the status has a secret: %s", text)
	}
}

// problemOf is the problem without its path and its cause.
func problemOf(c server.Credential) string {
	_, what, _ := strings.Cut(c.Problem, " ")
	what, _, _ = strings.Cut(what, ":")
	return what
}
