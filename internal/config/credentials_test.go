package config_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/config/inventory"
)

// TestEveryFileMayBeACredential: each key that ends in _file is found in the copies that systemd makes.
func TestEveryFileMayBeACredential(t *testing.T) {
	c := &config.Config{
		GRPC:     config.GRPC{TLS: &config.TLS{}},
		GitHub:   config.GitHub{Apps: []config.GitHubApp{{}}},
		Webhooks: &config.Webhooks{}, Page: &config.Page{OIDC: &config.OIDC{}},
		Services: map[string]config.Service{"render": {Queue: config.ServiceQueue{PostgREST: &config.PostgREST{}}}},
	}
	fill(reflect.ValueOf(c), config.CredentialsDir+"/x")
	c.UseCredentials("")
	if got := c.GRPC.TLS.CertFile; got != "/etc/remuda/credentials/x" {
		t.Errorf("without copies: %s", got)
	}
	c.UseCredentials("/run/credentials/controld.service")
	replaced := count(reflect.ValueOf(c), "/run/credentials/controld.service/remuda_x")
	want := 0
	for _, key := range inventory.Keys() {
		if strings.HasSuffix(key.Path, "_file") {
			want++
		}
	}
	if replaced != want {
		t.Errorf("%d paths of %d keys that end in _file are replaced", replaced, want)
	}
	c.GitHub.TokenFile = "/etc/remuda/other"
	c.UseCredentials("/run/x")
	if got := c.GitHub.TokenFile; got != "/etc/remuda/other" {
		t.Errorf("a file elsewhere is replaced by %s", got)
	}
	const copied = "/run/credentials/controld.service/remuda_app.pem"
	if got := config.CredentialOf(copied, "/run/credentials/controld.service"); got != "/etc/remuda/credentials/app.pem" {
		t.Errorf("the copy is said to be of %q", got)
	}
	for _, dir := range []string{"", "/run/other"} {
		if got := config.CredentialOf(copied, dir); got != "" {
			t.Errorf("with the directory %q it is said to be a copy of %q", dir, got)
		}
	}
}

// fill writes a value into every field whose key ends in _file.
func fill(v reflect.Value, value string) {
	each(v, func(f reflect.Value) { f.SetString(value) })
}

func count(v reflect.Value, value string) (n int) {
	each(v, func(f reflect.Value) {
		if f.String() == value {
			n++
		}
	})
	return n
}

// each calls do for the fields whose keys end in _file. Those of an entry of a map are of a copy that is put back.
func each(v reflect.Value, do func(reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			each(v.Elem(), do)
		}
	case reflect.Slice:
		for i := range v.Len() {
			each(v.Index(i), do)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			entry := reflect.New(v.Type().Elem()).Elem()
			entry.Set(v.MapIndex(key))
			each(entry, do)
			v.SetMapIndex(key, entry)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			if f.Kind() == reflect.String && strings.HasSuffix(v.Type().Field(i).Tag.Get("yaml"), "_file") {
				do(f)
				continue
			}
			each(f, do)
		}
	}
}
