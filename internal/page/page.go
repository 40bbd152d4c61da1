// Package page serves controld's page: what remuda shows, for a browser. It reads by the contract, as a caller with the role viewer, and
// changes nothing. It works without JavaScript, which adds the updates and the slider of the history.
package page

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	views "github.com/remuda-ci/remuda/internal/cli/view"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/page/signin"
	"github.com/remuda-ci/remuda/internal/recent"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// Path is where the page is. What is below it is the page's.
const Path = "/ui/"

// Options are the parts of a page. Fleet is required.
type Options struct {
	// Fleet answers what is shown.
	Fleet remudav1.FleetServiceClient
	// Workflow answers reads with an ID token of GitHub Actions; nil: such tokens are not taken.
	Workflow func(token string) remudav1.FleetServiceClient
	// Tokens gives the tokens that let a caller in. Without them and SignIn callers on this machine alone see the page.
	Tokens func() ([]lifecycle.Secret, error)
	// SignIn has people sign in by OpenID Connect; nil: they do not. Path, Log and Now are the page's.
	SignIn *signin.Options
	// Version is controld's.
	Version string
	Log     hclog.Logger
	Now     func() time.Time
}

// page is the handler of all of it.
type page struct {
	Options
	access access
	// What reads every host is not read for each look.
	pools     recent.Answers[*remudav1.ListPoolsResponse]
	costs     recent.Answers[*remudav1.GetCostResponse]
	served    recent.Answers[[]views.Run]
	histories recent.Answers[*history]
}

// bounds of a call: what is read of it, and how long its answer may take.
const (
	maxForm      = 4 << 10
	answerWithin = 10 * time.Second
)

//go:embed assets
var assets embed.FS

// Paths are what the handler of New serves.
var Paths = []string{Path, ReadsPath}

// New returns the handler of what is below Paths.
func New(o Options) (http.Handler, error) {
	if o.Fleet == nil {
		return nil, errors.New("new page: something that answers is required")
	}
	if o.Log == nil {
		o.Log = hclog.NewNullLogger()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	p := &page{Options: o, access: access{tokens: o.Tokens, now: o.Now}}
	p.histories.Most = mostHistories
	mux := http.NewServeMux()
	if err := p.addSignIn(mux); err != nil {
		return nil, fmt.Errorf("new page: %w", err)
	}
	shown := map[string]func(context.Context, *http.Request) (view, error){
		"{$}": p.overview, "hosts": p.hosts, "host/{id}": p.host, "runs": p.runs, "run/{owner}/{name}/{run}": p.run, "waiting": p.waiting,
		"history": p.history, "cost": p.cost, "services": p.services, "plan": p.plan, "server": p.server,
	}
	for path, show := range shown {
		mux.Handle("GET "+Path+path, p.guarded(show))
	}
	static, err := fs.Sub(assets, "assets/static")
	if err != nil {
		return nil, fmt.Errorf("new page: %w", err)
	}
	mux.Handle("GET "+Path+"static/", http.StripPrefix(Path+"static/", cached(http.FileServerFS(static))))
	mux.HandleFunc(Path, func(w http.ResponseWriter, _ *http.Request) {
		p.answer(w, http.StatusNotFound, view{Title: "No such page", Text: []string{"There is no such page."}})
	})
	all := http.NewServeMux()
	all.Handle(Path, http.NewCrossOriginProtection().Handler(http.MaxBytesHandler(mux, maxForm))) // another site signs people neither in nor out
	all.Handle(ReadsPath, p.reads(p.program))
	all.Handle(ownReadsPath, http.StripPrefix(strings.TrimSuffix(Path, "/"), p.reads(p.viewer)))
	return secured(all), nil
}

// secured has browsers take nothing from elsewhere, run no script that is not ours, and show the page in no other.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
			"form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// cached lets browsers keep for a while what an upgrade of controld alone changes. It lists no directory.
func cached(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Cache-Control", "max-age=300")
		next.ServeHTTP(w, r)
	})
}

// unreadable is said while a file of tokens or keys cannot be read.
const unreadable = "The tokens or keys of the page cannot be read now. The log of controld says why."

// guarded shows a view to callers who may see it. Others get the page where people sign in.
func (p *page) guarded(show func(context.Context, *http.Request) (view, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, err := p.access.viewer(r)
		switch {
		case errors.Is(err, errNoTokens):
			p.answer(w, http.StatusForbidden, view{Title: "Not for callers from elsewhere", Text: []string{err.Error()}})
			return
		case errors.Is(err, errUnknown):
			http.Redirect(w, r, Path+"login?"+url.Values{"to": {r.URL.RequestURI()}}.Encode(), http.StatusSeeOther)
			return
		case err != nil:
			p.Log.Error("a caller of the page cannot be checked", logkey.Error, err)
			p.answer(w, http.StatusServiceUnavailable, view{Title: "Not now", Text: []string{unreadable}})
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), answerWithin)
		defer cancel()
		v, err := show(ctx, r)
		code := http.StatusOK
		if err != nil {
			code, v = p.refusal(err)
		}
		v.SignedIn = who
		p.answer(w, code, v)
	})
}

// statusOf are the statuses of HTTP for those of gRPC that a reader can do something about.
var statusOf = map[codes.Code]int{
	codes.NotFound: http.StatusNotFound, codes.InvalidArgument: http.StatusBadRequest, codes.Unimplemented: http.StatusNotFound,
	codes.Unavailable: http.StatusServiceUnavailable, codes.DeadlineExceeded: http.StatusGatewayTimeout,
}

// refusal says why there is no answer.
func (p *page) refusal(err error) (int, view) {
	s := status.Convert(err)
	code, ok := statusOf[s.Code()]
	if !ok {
		p.Log.Error("the page has no answer", logkey.Error, err)
		code = http.StatusInternalServerError
	}
	return code, view{Title: "No answer", Text: []string{s.Message()}}
}

var templates = template.Must(template.New("").Funcs(template.FuncMap{"path": func() string { return Path }}).ParseFS(assets, "assets/*.html"))
