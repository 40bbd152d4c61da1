package agent_test

import (
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// regToken has the length of a registration token.
const regToken = "AABF3JGZDX3P5PMEXLND6TS6FCWO6"

// jit is like a JIT configuration: JSON in base64.
var jit = base64.StdEncoding.EncodeToString([]byte(`{".runner":"` + strings.Repeat("Zm9v", 90) + `",".credentials":"` + strings.Repeat("YmFy+/", 30) + `"}`))

// detailOf is what the report says of a log after a registration with a secret
// failed.
func detailOf(t testing.TB, secret, log string) string {
	t.Helper()
	w := newWorld()
	w.record.Registration.Secret = lifecycle.Secret(secret)
	w.fail["register"] = agent.Progress{Cause: lifecycle.CauseHost, Detail: log}
	a, err := agent.New(agent.Options{HostKey: "i-1", Store: w, Host: w, State: &w.disk})
	if err != nil {
		t.Fatal(err)
	}
	for range 30 {
		next, _ := a.Step(t.Context(), w.now())
		if w.answered(lifecycle.SignalRegFailed) {
			return w.report.Detail
		}
		w.sleepUntil(next)
	}
	t.Fatalf("no failure is told: %+v", w.report)
	return ""
}

func TestSecretsAreHidden(t *testing.T) {
	b64 := base64.StdEncoding.EncodeToString
	const pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nq83vEjRWeJCrze8=\n-----END RSA PRIVATE KEY-----"
	tests := map[string]struct{ log, secret string }{
		"token":                    {"sent " + regToken + ".", regToken},
		"token in base64":          {"sent " + b64([]byte(regToken)), b64([]byte(regToken))},
		"token inside base64":      {"sent " + b64([]byte("x:"+regToken+"!")), b64([]byte("x:" + regToken + "!"))},
		"token in base64 for URLs": {"sent " + base64.RawURLEncoding.EncodeToString([]byte("?>~"+regToken)), base64.RawURLEncoding.EncodeToString([]byte("?>~" + regToken))},
		"token in URL encoding":    {"GET /?a=%41%41" + regToken[2:] + "&b", regToken[2:]},
		"end of a token":           {regToken[9:] + " was refused", regToken[9:]},
		"token with a zero inside": {"sent " + regToken[:9] + "\x00" + regToken[9:], regToken[9:]},
		"token in colours":         {"sent " + regToken[:9] + "\x1b[1;31m" + regToken[9:], regToken[9:]},
		"JIT configuration":        {"sent " + jit, jit[20:60]},
		"JIT over several lines":   {jit[:76] + "\n" + jit[76:152] + "\n" + jit[152:228], jit[160:200]},
		"argument":                 {"config.sh --url https://x --token XYZ --labels a", "XYZ"},
		"argument with =":          {"config.sh --pat=XYZ1234", "XYZ1234"},
		"header":                   {"Authorization: RemoteAuth abc.def", "abc.def"},
		"header in JSON":           {`{"Authorization": "Bearer abcdef"}`, "abcdef"},
		"cookie":                   {"COOKIE=abcdefgh", "abcdefgh"},
		"header of the metadata":   {"X-aws-ec2-metadata-token: abcdefgh", "abcdefgh"},
		"remoteauth":               {"used RemoteAuth abcdefghijklmnopqrstuvw", "abcdefghijk"},
		"password as an argument":  {"x -Password abcdefgh", "abcdefgh"},
		"secret as an argument":    {"x --secret=abcdefgh", "abcdefgh"},
		"JIT as an argument":       {"x --jitconfig abcdefgh", "abcdefgh"},
		"password":                 {"PASSWD=abcdefgh", "abcdefgh"},
		"keys":                     {"apikey=abcdefgh private_key='ijklmnop'", "abcdefgh"},
		"a name that ends in _PAT": {"CI_PAT=abcdefgh", "abcdefgh"},
		"credential":               {"Credential=abcdefgh", "abcdefgh"},
		"signature":                {"Signature: 'abcdefgh'", "abcdefgh"},
		"jitconfig":                {"jitconfig: abcdefghijklmnopqrstuvw", "abcdefghijk"},
		"letters that fold":        {"pa\u017f\u017fword=abcdefgh to\u212aen=ijklmnop", "abcdefgh"},
		"bearer":                   {"used bearer abcdefghijklmnopqrstuvw", "abcdefghijk"},
		"AWS key":                  {"key AKIAIOSFODNN7EXAMPLE of", "AKIAIOSFODNN7EXAMPLE"},
		"AWS session key":          {"key ASIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE"},
		"AWS bearer key":           {"key ABIAIOSFODNN7EXAMPLE", "ABIAIOSFODNN7EXAMPLE"},
		"AWS context key":          {"key ACCAIOSFODNN7EXAMPLE", "ACCAIOSFODNN7EXAMPLE"},
		"AWS secret":               {"AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "wJalrXUtnFEMI"},
		"AWS secret in JSON":       {`"SecretAccessKey" : "wJalrXUtnFEMI/K7MDENG"`, "wJalrXUtnFEMI"},
		"installation token":       {"ghs_16C7e42F292c6912E7710c838347Ae178B4a", "16C7e42F"},
		"personal token":           {"x=ghp_16C7e42F292c6912E7710c838347Ae178B4a", "16C7e42F"},
		"fine-grained token":       {"github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz", "abcdefghijkl"},
		"token of git in base64":   {"basic " + b64([]byte("x-access-token:ghs_16C7e42F292c6912E7710c838347Ae178B4a")), "eC1hY2Nlc3M"},
		"JWT":                      {"eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOjF9.c2lnbmF0dXJl", "c2lnbmF0dXJl"},
		"PEM":                      {pem, "q83vEjRWeJ"},
		"PEM in JSON":              {strings.ReplaceAll(pem, "\n", `\n`), "q83vEjRWeJ"},
		"PEM without its end":      {pem[:70], "q83vEj"},
		"PEM without its start":    {pem[45:], "q83vEj"},
		"RSA parameters":           {`"modulus": "x", "d": "q83vEjRWeJCrze8q83vEjRWe"`, "q83vEjRWeJ"},
		"URL with a password":      {"https://user:pass1@github.com/x", "pass1"},
		"signed URL":               {"https://x.blob/y?se=1&sig=abc%2Fdef&sp=r", "abc%2Fdef"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			secret := regToken
			if strings.HasPrefix(name, "JIT") {
				secret = jit
			}
			if d := detailOf(t, secret, tt.log); strings.Contains(d, tt.secret) || !strings.Contains(d, "[secret]") {
				t.Errorf("detail %q", d)
			}
			// The limit must not cut it in the middle.
			for _, after := range []int{2048 - len(tt.log)/2, 2048 - 4, 2040 - len(tt.secret)/2} {
				log := "begin\n" + strings.Repeat("x ", 3000) + "\n" + tt.log + "\n" + strings.Repeat(". ", (after-2)/2)
				d := detailOf(t, secret, log)
				for piece := range pieces(tt.secret) {
					if strings.Contains(d, piece) {
						t.Errorf("%q is left: %.100q", piece, d)
					}
				}
			}
		})
	}
}

// pieces are the parts of a secret that would be worth something.
func pieces(secret string) map[string]bool {
	all := map[string]bool{}
	for i := 0; i+8 <= len(secret); i++ {
		all[secret[i:i+8]] = true
	}
	return all
}

// What people need to read stays.
func TestLogsStayReadable(t *testing.T) {
	for _, log := range []string{
		"remove token: HTTP 404 (NotFound)", "the token expired", "cannot get token: unexpected EOF",
		"open /var/lib/remuda/runner/.credentials: permission denied", "https://github.com/acme/app/actions/runs/123456789",
		"instance i-0123456789abcdef0, role AROAEXAMPLEEXAMPLE", "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"fatal: unable to access 'https://github.com/x/': Could not resolve host", "step 100%25 done\n\tat line 3 é",
	} {
		if d := detailOf(t, regToken, log); d != log {
			t.Errorf("%q became %q", log, d)
		}
	}
}

func FuzzDetail(f *testing.F) {
	f.Add("before ", " after", uint8(0), uint16(0))
	f.Add("--token ", "\xff", uint8(3), uint16(2040))
	f.Add("-----BEGIN", "=", uint8(1), uint16(3000))
	f.Fuzz(func(t *testing.T, before, after string, form uint8, fill uint16) {
		secret := regToken
		switch form % 5 {
		case 1:
			secret = base64.StdEncoding.EncodeToString([]byte(regToken))
		case 2:
			secret = base64.RawURLEncoding.EncodeToString([]byte("a:" + regToken))
		case 3:
			secret = url.QueryEscape("a b=" + regToken)
		case 4:
			secret = "ghs_16C7e42F292c6912E7710c838347Ae178B4a"
		}
		log := before + " " + secret + " " + after + strings.Repeat("\n", int(fill)%4096)
		d := detailOf(t, regToken, log)
		if len(d) > 2048 || !utf8.ValidString(d) {
			t.Fatalf("detail of %d bytes, valid: %t", len(d), utf8.ValidString(d))
		}
		if strings.Contains(before+after, secret[4:20]) {
			return
		}
		for piece := range pieces(secret) {
			if strings.Contains(d, piece) && !strings.Contains(before+after, piece) {
				t.Fatalf("%q of %q is left: %q", piece, secret, d)
			}
		}
	})
}

// An error may hold a secret as well as a log.
func TestErrorsOfTheAgentAreHiddenToo(t *testing.T) {
	w := newWorld()
	w.record.Registration.Secret = regToken
	w.effectErr = errors.New("start config.sh --token " + regToken + ": no space left on device")
	a := newAgent(t, w)
	settle(t, w, a, lifecycle.SignalRegFailed)
	passes(t, w, a, time.Second)
	if d := w.report.Detail; strings.Contains(d, regToken) || !strings.Contains(d, "no space left on device") {
		t.Errorf("detail %q", d)
	}
}
