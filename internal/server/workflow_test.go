package server_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/server"
	"github.com/remuda-ci/remuda/internal/server/idtoken"
	"github.com/remuda-ci/remuda/internal/server/issuertest"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// clock is a time that tests move.
type clock struct{ nanos atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.nanos.Store(time.Now().Truncate(time.Second).UnixNano())
	return c
}

func (c *clock) now() time.Time           { return time.Unix(0, c.nanos.Load()) }
func (c *clock) advance(d time.Duration)  { c.nanos.Add(int64(d)) }
func (c *clock) in(d time.Duration) int64 { return c.now().Add(d).Unix() }

// seen remembers ids, while it is there.
type seen struct {
	mu    sync.Mutex
	until map[string]time.Time
	away  bool
}

func (s *seen) once(_ context.Context, kind, id string, until time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return &lifecycle.UnavailableError{What: "write", RetryAfter: 3 * time.Second, Err: errors.New("the store is away")}
	}
	if _, known := s.until[kind+" "+id]; known {
		return lifecycle.ErrExists
	}
	s.until[kind+" "+id] = until
	return nil
}

// forks is GitHub's word on runs.
type forks struct {
	mu    sync.Mutex
	says  policy.Fork
	err   error
	asked []string
}

func (f *forks) of(_ context.Context, repository, runID string) (policy.Fork, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, repository+" "+runID)
	return f.says, f.err
}

// ci is a world that takes ID tokens.
type ci struct {
	*world
	*clock
	issuer *issuertest.Issuer
	seen   *seen
	forks  *forks
}

// rule is that of acme/app, whose tokens the issuer makes.
func rule() policy.Rule {
	return policy.Rule{RepositoryID: 1, Repository: repository, MaxHosts: 2, MaxRuntime: time.Hour, Events: []string{"push", "pull_request"}}
}

func newCI(t testing.TB, rules ...policy.Rule) *ci {
	t.Helper()
	c := &ci{clock: newClock(), issuer: issuertest.New(t), seen: &seen{until: map[string]time.Time{}}, forks: &forks{says: policy.ForkNo}}
	c.issuer.Now = c.now
	c.world = newWorldOf(t, c.callers(t, rules...))
	return c
}

func (c *ci) callers(t testing.TB, rules ...policy.Rule) server.Callers {
	t.Helper()
	tokens, err := idtoken.New(idtoken.Options{Issuer: c.issuer.URL, Audience: issuertest.Audience, Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	return server.Callers{Operators: operators, Tokens: tokens, Rules: rules, Once: c.seen.once, Fork: c.forks.of}
}

// retryOf is when the answer says to try again.
func retryOf(err error) time.Duration {
	for _, d := range status.Convert(err).Details() {
		if retry, ok := d.(*errdetails.RetryInfo); ok {
			return retry.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

// with is a context whose calls carry an authorization.
func with(ctx context.Context, authorization ...string) context.Context {
	for _, a := range authorization {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", a)
	}
	return ctx
}

// explain asks about the run of the issuer's tokens: a caller that is let in
// gets NOT_FOUND.
func (c *ci) explain(ctx context.Context, authorization ...string) error {
	_, err := c.ExplainRun(with(ctx, authorization...), &remudav1.ExplainRunRequest{Repository: repository, RunId: "42"})
	return err
}

// use calls with a token of these claims.
func (c *ci) use(ctx context.Context, claims issuertest.Claims) error {
	return c.explain(ctx, "Bearer "+c.issuer.Token(claims))
}

type claims = issuertest.Claims

func TestIDTokens(t *testing.T) {
	c := newCI(t, rule())
	other := issuertest.New(t)
	other.Rotate(c.issuer.KeyID())
	token := func(changes claims) []string { return []string{"Bearer " + c.issuer.Token(changes)} }
	signed := func(header claims) []string {
		return []string{"Bearer " + c.issuer.Sign(header, c.issuer.Claims(nil))}
	}
	none := c.issuer.Unsigned(claims{"alg": "none", "kid": c.issuer.KeyID()}, c.issuer.Claims(nil))
	good := c.issuer.Token(nil)
	tests := map[string]struct {
		authorization []string
		says          string // what the refusal says; empty: let in
	}{
		"good":                  {token(nil), ""},
		"scheme in small":       {[]string{"bearer " + c.issuer.Token(nil)}, ""},
		"audience in a list":    {token(claims{"aud": []string{issuertest.Audience}}), ""},
		"wrong audience":        {token(claims{"aud": "https://github.com/acme"}), `is for the audience ["https://github.com/acme"], not https://remuda.test alone`},
		"audience and another":  {token(claims{"aud": []string{issuertest.Audience, "x"}}), "is for the audience"},
		"no audience":           {token(claims{"aud": nil}), "is for the audience"},
		"wrong issuer":          {token(claims{"iss": "https://evil.test"}), `is of the issuer "https://evil.test"`},
		"issuer with a slash":   {token(claims{"iss": c.issuer.URL + "/"}), "is of the issuer"},
		"of another issuer":     {[]string{"Bearer " + other.Token(nil)}, "is of the issuer"},
		"another's signature":   {[]string{"Bearer " + other.Token(claims{"iss": c.issuer.URL})}, "has a signature that is not of " + c.issuer.URL},
		"alg none":              {[]string{"Bearer " + none + "."}, "is not signed"},
		"alg none, signed":      {signed(claims{"alg": "none", "kid": c.issuer.KeyID()}), `is signed with "none", not RS256`},
		"HS256, the public key": {[]string{"Bearer " + c.issuer.Confused()}, `is signed with "HS256", not RS256`},
		"RS512":                 {signed(claims{"alg": "RS512", "kid": c.issuer.KeyID()}), `is signed with "RS512"`},
		"no alg":                {signed(claims{"kid": c.issuer.KeyID()}), `is signed with ""`},
		"unknown key":           {signed(claims{"alg": "RS256", "kid": "mine"}), "is signed with a key that " + c.issuer.URL + " does not have"},
		"no key id":             {signed(claims{"alg": "RS256"}), "is signed with a key that"},
		"a key of its own":      {signed(claims{"alg": "RS256", "kid": "mine", "jwk": map[string]string{"kty": "RSA"}}), "is signed with a key that"},
		"tampered with":         {[]string{"Bearer " + c.issuer.Unsigned(claims{"alg": "RS256", "kid": c.issuer.KeyID()}, c.issuer.Claims(claims{"run_id": "43"})) + good[strings.LastIndex(good, "."):]}, "has a signature that is not of"},
		"59 s late":             {token(claims{"exp": c.in(-59 * time.Second)}), ""},
		"61 s late":             {token(claims{"exp": c.in(-61 * time.Second)}), "expired at " + c.now().Add(-61*time.Second).UTC().Format(time.RFC3339)},
		"no expiry":             {token(claims{"exp": nil}), "has no exp"},
		"59 s early":            {token(claims{"nbf": c.in(59 * time.Second)}), ""},
		"61 s early":            {token(claims{"nbf": c.in(61 * time.Second)}), "is not good before"},
		"no nbf":                {token(claims{"nbf": nil}), ""},
		"a bad nbf":             {token(claims{"nbf": -1}), "has an nbf that is no time"},
		"of the future":         {token(claims{"iat": c.in(61 * time.Second)}), "is of the future"},
		"never issued":          {token(claims{"iat": nil}), "has no iat"},
		"good for an hour":      {token(claims{"exp": c.in(50 * time.Minute)}), ""},
		"good for longer":       {token(claims{"exp": c.in(50*time.Minute + time.Second)}), "is good for longer than 1h"},
		"issued for an hour":    {token(claims{"nbf": c.in(0), "exp": c.in(time.Hour)}), ""},
		"issued for longer":     {token(claims{"nbf": c.in(time.Second), "exp": c.in(time.Hour + time.Second)}), "is good for longer than 1h"},
		"the last exp":          {token(claims{"exp": int64(1) << 40}), "is good for longer than 1h"},
		"the last iat":          {token(claims{"iat": int64(1) << 40}), "is of the future"},
		"the last nbf":          {token(claims{"nbf": int64(1) << 40}), "is not good before"},
		"good for ever":         {token(claims{"exp": int64(1) << 62}), "has no exp that is a time"},
		"no jti":                {token(claims{"jti": nil}), "has no jti"},
		"a long jti":            {token(claims{"jti": strings.Repeat("x", 257)}), "has no jti"},
		"no repository":         {token(claims{"repository": nil}), "has no repository as"},
		"no repository id":      {token(claims{"repository_id": nil}), "has no repository_id"},
		"id zero":               {token(claims{"repository_id": "0"}), "has no repository_id"},
		"no owner id":           {token(claims{"repository_owner_id": "seven"}), "has no repository_owner_id"},
		"no run":                {token(claims{"run_id": nil}), "has no run_id"},
		"no attempt":            {token(claims{"run_attempt": "-1"}), "has no run_attempt"},
		"the last attempt":      {token(claims{"run_attempt": "1048576"}), ""},
		"an attempt too many":   {token(claims{"run_attempt": "1048577"}), "has no run_attempt"},
		"the last id":           {token(claims{"repository_owner_id": "9223372036854775807"}), ""},
		"no event":              {token(claims{"event_name": nil}), "has no event_name"},
		"claims of a kind":      {token(claims{"run_id": 42}), "is no JSON Web Token of GitHub Actions"},
		"oversized":             {token(claims{"x": strings.Repeat("x", idtoken.MaxToken)}), "is longer than 8192 bytes"},
		"garbage":               {[]string{"Bearer garbage"}, "is no JSON Web Token"},
		"garbage in parts":      {[]string{"Bearer a.b.c"}, "is no JSON Web Token"},
		"JSON":                  {[]string{`Bearer {"payload":"e30","protected":"e30","signature":"e30"}`}, "is no JSON Web Token"},
		"with a blank":          {[]string{"Bearer  " + c.issuer.Token(nil)}, "is no JSON Web Token"},
		"nothing":               {[]string{"Bearer "}, "is not one bearer token"},
		"another scheme":        {[]string{"Basic " + c.issuer.Token(nil)}, "is not one bearer token"},
		"no scheme":             {[]string{c.issuer.Token(nil)}, "is not one bearer token"},
		"two":                   {append(token(nil), token(nil)...), "is not one bearer token"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := status.Convert(c.explain(t.Context(), tt.authorization...))
			want := codes.Unauthenticated
			if tt.says == "" {
				want = codes.NotFound
			}
			if s.Code() != want || !strings.Contains(s.Message(), tt.says) {
				t.Errorf("got %s: %s, want %s with %q", s.Code(), s.Message(), want, tt.says)
			}
			secret := tt.authorization[0][strings.LastIndexAny(tt.authorization[0], ". ")+1:]
			if len(secret) > 10 && (strings.Contains(s.Message(), secret) || strings.Contains(c.log.String(), secret)) {
				t.Error("the token is told or logged")
			}
		})
	}
}

func TestATokenIsGoodOnce(t *testing.T) {
	c := newCI(t, rule())
	token := "Bearer " + c.issuer.Token(claims{"jti": "one"})
	if err := c.explain(t.Context(), token); status.Code(err) != codes.NotFound {
		t.Fatalf("at first: %v", err)
	}
	err := c.explain(t.Context(), token)
	if status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "was used before: each call, and each retry of one, needs a new one") {
		t.Errorf("again: %v", err)
	}
	if err := c.use(t.Context(), claims{"jti": "one"}); status.Code(err) != codes.Unauthenticated {
		t.Errorf("another of the same jti: %v", err)
	}
	// It is good for 5 minutes. It is remembered for 2 minutes longer than any replica takes it.
	if got, until := c.seen.until["id-token one"], c.now().Add(5*time.Minute+idtoken.Leeway); !got.Equal(until.Add(2 * time.Minute)) {
		t.Errorf("remembered until %s, good until %s", got, until)
	}
}

func TestConcurrentUsesOfAToken(t *testing.T) {
	c := newCI(t, rule())
	token := "Bearer " + c.issuer.Token(nil)
	var passed, replayed atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			switch status.Code(c.explain(t.Context(), token)) {
			case codes.NotFound:
				passed.Add(1)
			case codes.Unauthenticated:
				replayed.Add(1)
			}
		})
	}
	all.Wait()
	if passed.Load() != 1 || replayed.Load() != 19 {
		t.Errorf("%d passed, %d were replays", passed.Load(), replayed.Load())
	}
}

func TestNobodyIsLetInUnremembered(t *testing.T) {
	c := newCI(t, rule())
	c.seen.away = true
	if err := c.use(t.Context(), nil); status.Code(err) != codes.Unavailable || retryOf(err) != 3*time.Second {
		t.Errorf("got %v, to be tried again in %s", err, retryOf(err))
	}
	if _, err := server.New(server.Options{Callers: server.Callers{Tokens: &idtoken.Verifier{}}}); err == nil {
		t.Error("tokens are taken without a memory")
	}
}

func TestWorkflowsCallForTheirOwnRun(t *testing.T) {
	wide := rule()
	wide.MaxHosts = 20
	c := newCI(t, wide)
	provision := func(change func(*remudav1.ProvisionRequest)) func(context.Context) error {
		return func(ctx context.Context) error {
			req := &remudav1.ProvisionRequest{Repository: repository, RunId: "42"}
			change(req)
			_, err := c.Provision(ctx, req)
			return err
		}
	}
	release := func(req *remudav1.ReleaseRequest) func(context.Context) error {
		return func(ctx context.Context) error { _, err := c.Release(ctx, req); return err }
	}
	explain := func(repository, run string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := c.ExplainRun(ctx, &remudav1.ExplainRunRequest{Repository: repository, RunId: run})
			return err
		}
	}
	tests := map[string]struct {
		call  func(context.Context) error
		want  codes.Code
		field string
	}{
		"provision":                 {provision(func(*remudav1.ProvisionRequest) {}), codes.OK, ""},
		"provision of another run":  {provision(func(r *remudav1.ProvisionRequest) { r.RunId = "43" }), codes.PermissionDenied, "run_id"},
		"provision elsewhere":       {provision(func(r *remudav1.ProvisionRequest) { r.Repository = "acme/other" }), codes.PermissionDenied, "repository"},
		"provision in capitals":     {provision(func(r *remudav1.ProvisionRequest) { r.Repository = "Acme/App" }), codes.PermissionDenied, "repository"},
		"provision of this attempt": {provision(func(r *remudav1.ProvisionRequest) { r.RunAttempt = proto.Int32(2) }), codes.OK, ""},
		"provision of an older one": {provision(func(r *remudav1.ProvisionRequest) { r.RunAttempt = proto.Int32(1) }), codes.PermissionDenied, "run_attempt"},
		"release":                   {release(&remudav1.ReleaseRequest{Repository: repository, RunId: "42"}), codes.OK, ""},
		"release of another run":    {release(&remudav1.ReleaseRequest{Repository: repository, RunId: "4"}), codes.PermissionDenied, "run_id"},
		"release elsewhere":         {release(&remudav1.ReleaseRequest{Repository: "acme/appl", RunId: "42"}), codes.PermissionDenied, "repository"},
		"release of another's":      {release(&remudav1.ReleaseRequest{Repository: repository, RunId: "42", RunAttempt: proto.Int32(3)}), codes.PermissionDenied, "run_attempt"},
		"explain":                   {explain(repository, "42"), codes.OK, ""},
		"explain another run":       {explain(repository, "43"), codes.PermissionDenied, "run_id"},
		"explain elsewhere":         {explain("acme/other", "42"), codes.PermissionDenied, "repository"},
		"a bad request":             {provision(func(r *remudav1.ProvisionRequest) { r.Repository = "acme" }), codes.InvalidArgument, "repository"},
	}
	if err := provision(func(*remudav1.ProvisionRequest) {})(with(t.Context(), "Bearer "+c.issuer.Token(nil))); err != nil {
		t.Fatal(err) // so that there is something to explain
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := tt.call(with(t.Context(), "Bearer "+c.issuer.Token(nil)))
			if status.Code(err) != tt.want || violated(status.Convert(err)) != tt.field {
				t.Errorf("got %v, want %s naming %q", err, tt.want, tt.field)
			}
		})
	}
}

// What a run uses is charged to its workflow by the name that its token has. Its author chose the name.
func TestTheRequestOfAWorkflowHasItsName(t *testing.T) {
	c := newCI(t, rule())
	for id, tt := range map[string]struct {
		claim any
		want  string
	}{"a": {"Build & test", "Build & test"}, "b": {"CI\x1b[31m", "CI"}, "c": {nil, ""}, "d": {strings.Repeat("x", 100), strings.Repeat("x", 64)}} {
		ctx := with(t.Context(), "Bearer "+c.issuer.Token(claims{"workflow": tt.claim}))
		if _, err := c.Provision(ctx, &remudav1.ProvisionRequest{Repository: repository, RunId: "42", RequestId: id, InstanceCount: proto.Int32(1)}); err != nil && status.Code(err) != codes.ResourceExhausted {
			t.Fatal(err)
		}
		if q, err := c.store.Request(t.Context(), repository, "42", id); err != nil || q.Workflow != tt.want {
			t.Errorf("workflow %q: the request has %q (%v)", tt.claim, q.Workflow, err)
		}
	}
}

// Whatever is not for workflows is refused to them, by token, on any machine
// and with any certificate.
func TestWorkflowsMayCallNothingElse(t *testing.T) {
	c := newCI(t, rule())
	for method, streams := range methods() {
		t.Run(method, func(t *testing.T) {
			err := call(with(t.Context(), "Bearer "+c.issuer.Token(nil)), c.conn, method, streams)
			switch method {
			case "Provision", "Release", "ExplainRun":
				if status.Code(err) != codes.InvalidArgument { // the request is empty
					t.Errorf("got %v", err)
				}
			default:
				if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "and not "+method) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}

// asked is what the fleet was asked for by the only request of run 42.
func (c *ci) asked(t *testing.T, id string) lifecycle.Spec {
	t.Helper()
	q, err := c.store.Request(t.Context(), repository, "42", id)
	if err != nil {
		t.Fatal(err)
	}
	return q.Spec
}

func TestProvisionByRule(t *testing.T) {
	c := newCI(t, rule())
	resp, err := c.Provision(with(t.Context(), "Bearer "+c.issuer.Token(nil)), &remudav1.ProvisionRequest{Repository: repository, RunId: "42"})
	if err != nil {
		t.Fatal(err)
	}
	if spec := c.asked(t, resp.GetRequestId()); spec.RunAttempt != 2 || spec.MaxRuntime != time.Hour || spec.Pool != "default" || spec.Count != 1 {
		t.Errorf("asked for %+v; the attempt is 2, the rule allows an hour", spec)
	}
	for _, says := range []string{`decision=allowed`, `reason="the rule of repository acme/app allows it"`, `caller="run 42 of acme/app, attempt 2"`} {
		if !strings.Contains(c.log.String(), says) {
			t.Errorf("the log does not say %s:\n%s", says, c.log)
		}
	}
	// What a run has by other requests counts too.
	_, err = c.Provision(with(t.Context(), "Bearer "+c.issuer.Token(nil)), &remudav1.ProvisionRequest{Repository: repository, RunId: "42", InstanceCount: proto.Int32(2)})
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "may have 2 at once") {
		t.Errorf("a run would have three hosts, and its rule allows two: %v", err)
	}
}

// A runtime that a workflow left out is the rule's. A rule that changes keeps no workflow from its request.
func TestARuleThatChangesKeepsRequests(t *testing.T) {
	c := newCI(t, rule())
	changed := rule()
	changed.MaxRuntime = 30 * time.Minute
	restarted := newWorldOf(t, c.callers(t, changed), func(o *fleet.Options) { o.Store, o.Guards, o.Compute = c.store, c.store, c.cloud })
	var hosts []string
	for _, w := range []*world{c.world, restarted} {
		got, err := w.Provision(with(t.Context(), "Bearer "+c.issuer.Token(nil)), &remudav1.ProvisionRequest{Repository: repository, RunId: "42", RequestId: "same"})
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, got.GetInstances()[0].GetInstanceId())
	}
	if spec := c.asked(t, "same"); spec.MaxRuntime != time.Hour || hosts[0] != hosts[1] {
		t.Errorf("the request has the hosts %v for %s, want one host for 1h", hosts, spec.MaxRuntime)
	}
}

func TestRulesAreKept(t *testing.T) {
	pullRequest := claims{"event_name": "pull_request", "ref": "refs/pull/9/merge"}
	spot := func(r *remudav1.ProvisionRequest) { r.UsageClass = remudav1.UsageClass_USAGE_CLASS_SPOT }
	with1 := func(change func(*policy.Rule)) policy.Rule { r := rule(); change(&r); return r }
	tests := map[string]struct {
		rule    policy.Rule
		claims  claims
		fork    policy.Fork
		forkErr error
		request func(*remudav1.ProvisionRequest)
		want    codes.Code
		says    string
		asks    int // how often GitHub is asked
	}{
		"push":               {rule: rule()},
		"event":              {rule: rule(), claims: claims{"event_name": "schedule"}, want: codes.PermissionDenied, says: "the event schedule"},
		"ref":                {rule: with1(func(r *policy.Rule) { r.Refs = []string{"refs/tags/*"} }), want: codes.PermissionDenied, says: "the ref refs/heads/main"},
		"workflow":           {rule: with1(func(r *policy.Rule) { r.Workflows = []string{"acme/ci/**"} }), want: codes.PermissionDenied, says: "the workflow acme/app/.github/workflows/ci.yml@refs/heads/main"},
		"no workflow":        {rule: with1(func(r *policy.Rule) { r.Workflows = []string{"**"} }), claims: claims{"job_workflow_ref": nil}, want: codes.PermissionDenied, says: "the workflow of the run is not known"},
		"pool":               {rule: rule(), request: func(r *remudav1.ProvisionRequest) { r.Pool = "spare" }, want: codes.PermissionDenied, says: "pool spare"},
		"no such pool":       {rule: rule(), request: func(r *remudav1.ProvisionRequest) { r.Pool = "nope" }, want: codes.PermissionDenied, says: "pool nope"},
		"class":              {rule: with1(func(r *policy.Rule) { r.ResourceClasses = []string{"xlarge"} }), want: codes.PermissionDenied, says: "resource class large"},
		"usage class":        {rule: with1(func(r *policy.Rule) { r.UsageClasses = []lifecycle.UsageClass{"spot"} }), want: codes.PermissionDenied, says: "usage class on-demand"},
		"hosts":              {rule: rule(), request: func(r *remudav1.ProvisionRequest) { r.InstanceCount = proto.Int32(3) }, want: codes.PermissionDenied, says: "3 hosts are more than the 2"},
		"runtime":            {rule: rule(), request: func(r *remudav1.ProvisionRequest) { r.MaxRuntime = durationpb.New(61 * time.Minute) }, want: codes.PermissionDenied, says: "1h1m0s"},
		"another repository": {rule: rule(), claims: claims{"repository_id": "2", "repository": "eve/app", "repository_owner_id": "70"}, want: codes.PermissionDenied, says: "repository: acme/app is not"},
		"renamed":            {rule: with1(func(r *policy.Rule) { r.Repository = "acme/old" }), want: codes.PermissionDenied, says: "write repository: acme/app"},
		"name's new owner":   {rule: rule(), claims: claims{"repository_id": "2", "repository_owner_id": "70"}, want: codes.PermissionDenied, says: "repository acme/app has the id 2, and its rule is for 1"},
		"pull request":       {rule: rule(), claims: pullRequest, fork: policy.ForkNo, asks: 1},
		"from a fork":        {rule: rule(), claims: pullRequest, fork: policy.ForkYes, want: codes.PermissionDenied, says: "is of a fork", asks: 1},
		"perhaps a fork":     {rule: rule(), claims: pullRequest, want: codes.PermissionDenied, says: "it is not known whether", asks: 1},
		"GitHub is away": {rule: rule(), claims: pullRequest, forkErr: &lifecycle.UnavailableError{What: "get run", RetryAfter: time.Second, Err: errors.New("500")},
			want: codes.Unavailable, says: "try again with a new ID token", asks: 1},
		"GitHub knows no such run": {rule: rule(), claims: pullRequest, fork: policy.ForkNo, forkErr: lifecycle.ErrNotFound, want: codes.PermissionDenied, says: "it is not known whether", asks: 1},
		"forks are welcome":        {rule: with1(func(r *policy.Rule) { r.Forks = true }), claims: pullRequest, fork: policy.ForkYes},
		"refused anyway":           {rule: rule(), claims: pullRequest, request: func(r *remudav1.ProvisionRequest) { r.Pool = "spare" }, want: codes.PermissionDenied, says: "pool spare"},
		"pull request on demand":   {rule: with1(func(r *policy.Rule) { r.SpotForPullRequests = true }), claims: pullRequest, fork: policy.ForkNo, want: codes.PermissionDenied, says: "spot hosts only"},
		"pull request on spot":     {rule: with1(func(r *policy.Rule) { r.SpotForPullRequests = true }), claims: pullRequest, fork: policy.ForkNo, request: spot, asks: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCI(t, tt.rule, policy.Rule{OwnerID: 70, MaxHosts: 1})
			c.forks.says, c.forks.err = tt.fork, tt.forkErr
			req := &remudav1.ProvisionRequest{Repository: repository, RunId: "42"}
			if tt.request != nil {
				tt.request(req)
			}
			_, err := c.Provision(with(t.Context(), "Bearer "+c.issuer.Token(tt.claims)), req)
			if status.Code(err) != tt.want || !strings.Contains(status.Convert(err).Message(), tt.says) {
				t.Errorf("got %v, want %s with %q", err, tt.want, tt.says)
			}
			if tt.want == codes.PermissionDenied && !strings.Contains(c.log.String(), "decision=refused") {
				t.Errorf("the refusal is not logged:\n%s", c.log)
			}
			if len(c.forks.asked) != tt.asks || tt.asks > 0 && c.forks.asked[0] != "acme/app 42" {
				t.Errorf("GitHub was asked about %v, want %d", c.forks.asked, tt.asks)
			}
		})
	}
}

// Any GitHub user can get a token for our audience: it is worth no
// write.
func TestStrangersCostNothing(t *testing.T) {
	c := newCI(t, rule())
	err := c.use(t.Context(), claims{"repository_id": "9", "repository": "eve/app"})
	if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "repository eve/app (repository_id 9, owner_id 7) has no rule") || len(c.seen.until) != 0 {
		t.Errorf("got %v, and %d writes", err, len(c.seen.until))
	}
}

func TestTokensAreNotTakenUnconfigured(t *testing.T) {
	c := newCI(t)
	w := newWorld(t)
	_, err := w.ListPools(with(t.Context(), "Bearer "+c.issuer.Token(nil)), &remudav1.ListPoolsRequest{})
	if status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "callers.repositories is not configured") {
		t.Errorf("got %v", err)
	}
}

// Over TLS a workflow needs no certificate, and one makes no operator of it.
func TestTokensOverTLS(t *testing.T) {
	c := newCI(t, rule())
	ours := newAuthority(t, "ours")
	cert, key := ours.issue("controld")
	config, err := server.LoadTLS(cert, key, ours.file)
	if err != nil {
		t.Fatal(err)
	}
	addr := serveTLS(t, config, c.callers(t, rule()))
	for name, from := range map[string]*authority{"without a certificate": nil, "with an admin's": ours} {
		t.Run(name, func(t *testing.T) {
			client := remudav1.NewFleetServiceClient(dial(t, addr, ours.client(from, "admin")))
			_, err := client.ExplainRun(with(t.Context(), "Bearer "+c.issuer.Token(nil)), &remudav1.ExplainRunRequest{Repository: repository, RunId: "42"})
			if status.Code(err) != codes.NotFound {
				t.Errorf("its own run: %v", err)
			}
			_, err = client.ListPools(with(t.Context(), "Bearer "+c.issuer.Token(nil)), &remudav1.ListPoolsRequest{})
			if status.Code(err) != codes.PermissionDenied {
				t.Errorf("the pools: %v", err)
			}
		})
	}
}
