package statement_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
)

func keyOf(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

var at = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func reset() statement.Reset {
	return statement.Reset{
		Host: "i-0b22a22eec53b9321", BootID: "c6c5b3f0-6d0e-4d3b-8a55-5b0e1a6f2a11", Assignment: 6, RunBefore: "acme/shop/41", Level: statement.LevelSlate,
		Done: []string{"units", "processes"}, Checked: []statement.Check{{"directories", 0}, {"disk space", 0}},
		Result: statement.ResultClean, BegunAt: at, EndedAt: at.Add(2 * time.Second), AgentVersion: "1.2.3",
	}
}

func sign(t *testing.T, r statement.Reset) string {
	t.Helper()
	envelope, err := statement.Sign(r, keyOf(1))
	if err != nil {
		t.Fatal(err)
	}
	return envelope
}

func TestSignedIsOpened(t *testing.T) {
	t.Parallel()
	envelope := sign(t, reset())
	got, err := statement.Open(envelope, statement.KeyOf(keyOf(1)))
	if diff := cmp.Diff(reset(), got); diff != "" || err != nil {
		t.Errorf("opened: %v (-want +got):\n%s", err, diff)
	}
}

// What others read: the names and types are those of in-toto and DSSE, and stay.
func TestForm(t *testing.T) {
	t.Parallel()
	var e struct {
		PayloadType string
		Payload     []byte
		Signatures  []struct {
			KeyID string
			Sig   []byte
		}
	}
	if err := json.Unmarshal([]byte(sign(t, reset())), &e); err != nil {
		t.Fatal(err)
	}
	want := `{"_type":"https://in-toto.io/Statement/v1",` +
		`"subject":[{"name":"i-0b22a22eec53b9321","digest":{"sha256":"546382d514161d39201a95099bc8ad7302848049d11cb92be6875ec7c93623b9"}}],` +
		`"predicateType":"https://remuda-ci.github.io/reset/v1","predicate":{"bootId":"c6c5b3f0-6d0e-4d3b-8a55-5b0e1a6f2a11","assignment":6,` +
		`"runBefore":"acme/shop/41","level":"slate","done":["units","processes"],"checked":[{"name":"directories","findings":0},` +
		`{"name":"disk space","findings":0}],"result":"clean","begunAt":"2026-03-02T12:00:00Z","endedAt":"2026-03-02T12:00:02Z",` +
		`"agentVersion":"1.2.3","keyWithinReach":false}}`
	if diff := cmp.Diff(want, string(e.Payload)); diff != "" {
		t.Errorf("payload (-want +got):\n%s", diff)
	}
	if e.PayloadType != "application/vnd.in-toto+json" || len(e.Signatures) != 1 || e.Signatures[0].KeyID != statement.KeyOf(keyOf(1)).ID() {
		t.Errorf("envelope: %+v", e)
	}
	// DSSE's protocol.md: "DSSEv1" SP LEN(type) SP type SP LEN(body) SP body.
	signed := []byte("DSSEv1 28 application/vnd.in-toto+json 589 " + string(e.Payload))
	public, _ := keyOf(1).Public().(ed25519.PublicKey)
	if len(e.Payload) != 589 || !ed25519.Verify(public, signed, e.Signatures[0].Sig) {
		t.Errorf("the signature of %d bytes is not that of DSSE", len(e.Payload))
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	good := sign(t, reset())
	raw := func(payload string) string { return statement.SealForTest(t, []byte(payload), keyOf(1)) }
	statementOf := func(typ, predicate, subject string) string {
		return raw(`{"_type":"` + typ + `","subject":` + subject + `,"predicateType":"` + predicate + `","predicate":{}}`)
	}
	subject := `[{"name":"i-1","digest":{"sha256":"00"}}]`
	other := statement.KeyOf(keyOf(2))
	tests := map[string]struct {
		envelope string
		key      statement.Key
		want     string
	}{
		"another key":     {good, other, "its signature is not of key " + other.ID()},
		"no key":          {good, "", "the key is none of ed25519"},
		"half a key":      {good, "AAAA", "the key is none of ed25519"},
		"nothing":         {"", "", "the key is none"},
		"empty":           {"", statement.KeyOf(keyOf(1)), "it is no DSSE envelope"},
		"changed payload": {strings.Replace(good, `"payload":"eyJfdHlwZSI6`, `"payload":"eyJfdHlwZSJ6`, 1), statement.KeyOf(keyOf(1)), "its signature is not of key"},
		"other type":      {strings.Replace(good, "in-toto+json", "in-toto+jsoN", 1), statement.KeyOf(keyOf(1)), "a payload of another type"},
		"no signature":    {`{"payloadType":"application/vnd.in-toto+json","payload":""}`, statement.KeyOf(keyOf(1)), "not one signature"},
		"too long":        {good + strings.Repeat(" ", statement.MaxEnvelope), statement.KeyOf(keyOf(1)), "longer than 4096 bytes"},
		"no JSON":         {raw("x"), statement.KeyOf(keyOf(1)), "no statement of in-toto"},
		"old statement":   {statementOf("https://in-toto.io/Statement/v0.1", statement.ResetType, subject), statement.KeyOf(keyOf(1)), "no Statement v1"},
		"other predicate": {statementOf(statement.Type, "https://slsa.dev/provenance/v1", subject), statement.KeyOf(keyOf(1)), "not about a reset"},
		"no subject":      {statementOf(statement.Type, statement.ResetType, "[]"), statement.KeyOf(keyOf(1)), "not one host"},
		"wrong digest":    {statementOf(statement.Type, statement.ResetType, subject), statement.KeyOf(keyOf(1)), "not one host with the digest"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if r, err := statement.Open(tt.envelope, tt.key); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("opened %+v, error %v, want %q", r, err, tt.want)
			}
		})
	}
}

func TestShows(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*statement.Reset)
		want   string
	}{
		"clean":              {func(*statement.Reset) {}, ""},
		"another host":       {func(r *statement.Reset) { r.Host = "i-2" }, "another host"},
		"another assignment": {func(r *statement.Reset) { r.Assignment = 5 }, "assignment 5"},
		"another boot":       {func(r *statement.Reset) { r.BootID = "x" }, "another boot"},
		"failed":             {func(r *statement.Reset) { r.Result = statement.ResultFailed }, "not say that the host is clean"},
		"a finding":          {func(r *statement.Reset) { r.Checked[1].Findings = 1 }, "not say that the host is clean"},
		"nothing checked":    {func(r *statement.Reset) { r.Checked = nil }, "not say that the host is clean"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := reset()
			tt.change(&r)
			err := r.Shows("i-0b22a22eec53b9321", 6, reset().BootID)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestTooLongToSign(t *testing.T) {
	t.Parallel()
	r := reset()
	r.RunBefore = strings.Repeat("x", statement.MaxEnvelope)
	if _, err := statement.Sign(r, keyOf(1)); err == nil {
		t.Error("an envelope that controld would refuse was made")
	}
}

// FuzzOpen: whatever a host sends, it is opened only if the key has signed it.
func FuzzOpen(f *testing.F) {
	envelope, err := statement.Sign(reset(), keyOf(1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(envelope, string(statement.KeyOf(keyOf(1))))
	f.Add(`{"payloadType":"application/vnd.in-toto+json","payload":"AA==","signatures":[{"sig":"AA=="}]}`, "")
	f.Fuzz(func(t *testing.T, text, key string) {
		r, err := statement.Open(text, statement.Key(key))
		if err == nil && (statement.Key(key) != statement.KeyOf(keyOf(1)) || !cmp.Equal(r, reset())) {
			t.Errorf("opened %+v by %q", r, key)
		}
	})
}

func TestTheRunBefore(t *testing.T) {
	t.Parallel()
	for before, want := range map[string][2]string{"acme/shop/41": {"acme/shop", "41"}, "41": {"", "41"}, "/41": {"", "41"}, "": {"", ""}} {
		if repository, runID := (statement.Reset{RunBefore: before}).Before(); repository != want[0] || runID != want[1] {
			t.Errorf("%q: run %q of %q, want %q of %q", before, runID, repository, want[1], want[0])
		}
	}
}

func TestStepsAndChecks(t *testing.T) {
	t.Parallel()
	var r statement.Reset
	r.Did("units")
	r.Did("processes")
	r.Check("directories", 2)
	r.Check("disk space", 1)
	want := statement.Reset{Done: []string{"units", "processes"}, Checked: []statement.Check{{"directories", 2}, {"disk space", 1}}}
	if diff := cmp.Diff(want, r); diff != "" || r.Findings() != 3 {
		t.Errorf("%d findings (-want +got):\n%s", r.Findings(), diff)
	}
}

func TestKeysThatAreNone(t *testing.T) {
	t.Parallel()
	good := statement.KeyOf(keyOf(1))
	for name, key := range map[string]statement.Key{
		"none": "", "no base64": "!" + good[1:], "a byte less": statement.Key(base64.StdEncoding.EncodeToString(make([]byte, 31))),
		"a byte more": statement.Key(base64.StdEncoding.EncodeToString(make([]byte, 33))), "a line break in it": good[:10] + "\n" + good[10:],
	} {
		if key.Valid() {
			t.Errorf("%s is a key", name)
		}
	}
	if !good.Valid() || len(good.Bytes()) != ed25519.PublicKeySize {
		t.Errorf("%s is none", good)
	}
}
