package web_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/web"
)

func TestSecretsOfAText(t *testing.T) {
	const sixteen = "xxxxxxxxxxxxxxxx"
	tests := []struct {
		name, text string
		want       []lifecycle.Secret
		err        string
	}{
		{"one", "the first secret", []lifecycle.Secret{"the first secret"}, ""},
		{"one with its line's end", "the first secret\n", []lifecycle.Secret{"the first secret"}, ""},
		{"of another system", "the first secret\r\nthe second secret\r\n", []lifecycle.Secret{"the first secret", "the second secret"}, ""},
		{"two, and blank lines", "\n first of two words \n\n\nthe second secret\n \n", []lifecycle.Secret{"first of two words", "the second secret"}, ""},
		{"16", strings.Repeat(sixteen+"\n", 16), slices.Repeat([]lifecycle.Secret{sixteen}, 16), ""},
		{"none", "", nil, "holds no secret"},
		{"blank lines alone", " \n\t\n\r\n", nil, "holds no secret"},
		{"17", strings.Repeat(sixteen+"\n", 17), nil, "holds 17 secrets; write at most 16"},
		{"one that can be guessed", sixteen + "\n\n" + sixteen[1:], nil, "has a secret of 15 bytes in line 3; write at least 16"},
		{"a large text", strings.Repeat("x", 16<<10+1), nil, "is larger than 16384 bytes"},
	}
	for _, tt := range tests {
		path := filepath.Join(t.TempDir(), "secrets")
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("REMUDA_TEST_SECRETS", tt.text)
		for source, read := range map[string]web.SecretSource{path: web.SecretFile(path), "REMUDA_TEST_SECRETS": web.SecretVariable("REMUDA_TEST_SECRETS")} {
			t.Run(tt.name+" of "+filepath.Base(source), func(t *testing.T) {
				got, err := read()
				switch {
				case tt.err == "" && err != nil:
					t.Error(err)
				case tt.err != "" && (err == nil || !strings.Contains(err.Error(), source+" "+tt.err) || strings.Contains(err.Error(), "xx")):
					t.Errorf("got %v, want %q", err, tt.err)
				}
				if d := cmp.Diff(revealed(tt.want), revealed(got)); d != "" {
					t.Error(d)
				}
			})
		}
	}
}

// revealed are the secrets themselves: as such they hide from a difference too.
func revealed(secrets []lifecycle.Secret) (texts []string) {
	for _, s := range secrets {
		texts = append(texts, s.Reveal())
	}
	return texts
}

func TestSecretFileIsReadEachTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets")
	read := web.SecretFile(path)
	if _, err := read(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	for _, text := range []string{"the first secret", "the second secret"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := read(); err != nil || len(got) != 1 || got[0].Reveal() != text {
			t.Errorf("got %v, %v", revealed(got), err)
		}
	}
}
