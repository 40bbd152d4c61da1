package idtoken

import (
	"context"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/sync/singleflight"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

const (
	// freshFor is how long keys are used before they are asked for again. A
	// key that was withdrawn is taken for so long.
	freshFor = time.Hour
	// keepFor is how long they are used when the issuer cannot be asked: an outage of GitHub is shorter, and
	// who can cut us off from the issuer cannot keep a withdrawn key alive for longer.
	keepFor = 24 * time.Hour
	// askEvery bounds how often the issuer is asked, however many tokens come with
	// unknown keys, and while it does not answer.
	askEvery = 10 * time.Second
	// askWithin bounds one look for keys.
	askWithin = 5 * time.Second
	// maxBody bounds what the issuer may answer.
	maxBody = 1 << 20
	// minModulus is the shortest key that is taken, in bits.
	minModulus = 2048
)

// keys are those of the issuer, by their ids, asked for when they are needed.
type keys struct {
	issuer string
	client *http.Client
	now    func() time.Time
	flight singleflight.Group

	mu sync.Mutex
	// byID are the keys as of fetched; asked is when they were last asked for, and trouble why that failed.
	byID           map[string]*rsa.PublicKey
	fetched, asked time.Time
	trouble        error
}

func newKeys(issuer string, client *http.Client, now func() time.Time) *keys {
	own := http.Client{}
	if client != nil {
		own = *client
	}
	// A redirect could lead to plaintext, and there is no need for one.
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	own.Transport = bounded{own.Transport}
	return &keys{issuer: issuer, client: &own, now: now}
}

// find is the key of an id: *server.TokenError if the issuer has none of it,
// lifecycle.ErrUnavailable if that is not known.
func (k *keys) find(ctx context.Context, id string) (*rsa.PublicKey, error) {
	key, ask := k.known(id)
	if ask {
		select {
		case <-ctx.Done():
			return nil, &lifecycle.UnavailableError{What: "ask " + k.issuer + " for its keys", RetryAfter: askEvery, Err: ctx.Err()}
		case <-k.flight.DoChan("", func() (any, error) { k.ask(); return nil, nil }):
		}
		key, _ = k.known(id)
	}
	if key != nil {
		return key, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.trouble != nil {
		return nil, &lifecycle.UnavailableError{What: "ask " + k.issuer + " for its keys", RetryAfter: askEvery, Err: k.trouble}
	}
	return nil, bad("is signed with a key that %s does not have", k.issuer)
}

// known is the key of an id, nil if it is not known; and whether to ask for the keys before relying on that.
func (k *keys) known(id string) (key *rsa.PublicKey, ask bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	age := now.Sub(k.fetched)
	if age < keepFor {
		key = k.byID[id]
	}
	return key, (key == nil || age >= freshFor) && now.Sub(k.asked) >= askEvery
}

// ask gets the keys; those that are known stay when it fails. It is not bound
// to a call: others wait for it too.
func (k *keys) ask() {
	ctx, cancel := context.WithTimeout(context.Background(), askWithin)
	defer cancel()
	byID, err := k.fetch(oidc.ClientContext(ctx, k.client))
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked, k.trouble = k.now(), err
	if err == nil {
		k.byID, k.fetched = byID, k.asked
	}
}

// fetch finds out where the keys are, and reads them.
func (k *keys) fetch(ctx context.Context) (map[string]*rsa.PublicKey, error) {
	provider, err := oidc.NewProvider(ctx, k.issuer)
	if err != nil {
		return nil, fmt.Errorf("discover: %w", err)
	}
	var told struct {
		KeysURL string `json:"jwks_uri"`
	}
	if err := provider.Claims(&told); err != nil {
		return nil, fmt.Errorf("discover: %w", err)
	}
	if err := k.allow(told.KeysURL); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, told.KeysURL, nil)
	if err != nil {
		return nil, fmt.Errorf("get keys: %w", err)
	}
	resp, err := k.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("get keys: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("get keys: %s", resp.Status)
	}
	return readKeys(resp.Body)
}

// allow refuses keys that would come by a weaker way than what the issuer says.
func (k *keys) allow(keysURL string) error {
	own, err := url.Parse(k.issuer)
	if err != nil {
		return fmt.Errorf("discover: %w", err)
	}
	u, err := url.Parse(keysURL)
	if err != nil || u.Scheme != own.Scheme || u.Host != own.Host {
		return fmt.Errorf("discover: the keys are at %.200q, and not at %s", keysURL, own.Host)
	}
	return nil
}

// readKeys reads a set of JSON Web Keys. Those that are not for RS256 are left
// out, as RFC 7517 section 5 says of what is not understood.
func readKeys(r io.Reader) (map[string]*rsa.PublicKey, error) {
	var set struct {
		Keys []struct {
			Type      string `json:"kty"`
			ID        string `json:"kid"`
			Use       string `json:"use"`
			Algorithm string `json:"alg"`
			N         string `json:"n"`
			E         string `json:"e"`
		} `json:"keys"`
	}
	if err := json.NewDecoder(r).Decode(&set); err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	byID := map[string]*rsa.PublicKey{}
	for _, one := range set.Keys {
		n, errN := base64.RawURLEncoding.DecodeString(one.N)
		e, errE := base64.RawURLEncoding.DecodeString(one.E)
		modulus, exponent := new(big.Int).SetBytes(n), new(big.Int).SetBytes(e)
		fits := one.Type == "RSA" && (one.Use == "" || one.Use == "sig") && (one.Algorithm == "" || one.Algorithm == oidc.RS256)
		sound := errN == nil && errE == nil && modulus.BitLen() >= minModulus && exponent.BitLen() > 1 && exponent.BitLen() <= 31
		if fits && sound && one.ID != "" {
			byID[one.ID] = &rsa.PublicKey{N: modulus, E: int(exponent.Int64())}
		}
	}
	if len(byID) == 0 {
		return nil, errors.New("read keys: there is none for RS256")
	}
	return byID, nil
}

// bounded is a transport whose answers end after maxBody.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	next := b.next
	if next == nil {
		next = http.DefaultTransport
	}
	resp, err := next.RoundTrip(req)
	if err == nil {
		resp.Body = &boundedBody{io.LimitReader(resp.Body, maxBody), resp.Body}
	}
	return resp, err
}

type boundedBody struct {
	io.Reader
	io.Closer
}
