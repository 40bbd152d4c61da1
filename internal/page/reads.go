package page

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/remuda-ci/remuda/internal/logkey"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// ReadsPath is where programs read by HTTP, in JSON or as protobuf: the calls of the contract that change nothing, by the protocol Connect
// (connectrpc.com/docs/protocol), which is that of a POST with curl.
const ReadsPath = "/remuda.v1.FleetService/"

// ownReadsPath has the same calls for browsers that are signed in, whose cookies are for what is below Path.
const ownReadsPath = Path + "remuda.v1.FleetService/"

// maxRead bounds a request. Each is some names.
const maxRead = 16 << 10

// errRead says how a program reads.
var errRead = errors.New("a token of page.token_file, or an ID token of GitHub Actions, is required, over HTTPS: Authorization: Bearer TOKEN; " +
	"a browser that is signed in reads at " + ownReadsPath)

// reads has the calls, for the callers that known returns a client for. Those that change something, and streams, are not here: they need gRPC.
func (p *page) reads(known func(*http.Request) (remudav1.FleetServiceClient, error)) http.Handler {
	mux, refusal := readCalls(), connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fleet, err := known(r)
		switch {
		case !slices.Contains(ownSites, r.Header.Get("Sec-Fetch-Site")):
			err = connect.NewError(connect.CodePermissionDenied, errors.New("a page of another site asks, in a browser"))
		case err == nil:
			mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), readsFrom{}, fleet)))
			return
		case errors.Is(err, errNoTokens):
			err = connect.NewError(connect.CodePermissionDenied, err)
		case errors.Is(err, errUnknown):
			w.Header().Set("WWW-Authenticate", "Bearer")
			err = connect.NewError(connect.CodeUnauthenticated, errRead)
		default:
			p.Log.Error("a caller of the page cannot be checked", logkey.Error, err)
			err = connect.NewError(connect.CodeUnavailable, errors.New("the tokens or keys of the page cannot be read now"))
		}
		_ = refusal.Write(w, r, err) // the caller has left
	})
}

// program answers a program: with a token of the page as a viewer, and with an ID token as its workflow run.
func (p *page) program(r *http.Request) (remudav1.FleetServiceClient, error) {
	err := p.access.check(r)
	if !errors.Is(err, errUnknown) || p.Workflow == nil || !private(r) {
		return p.Fleet, err
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") || strings.Count(token, ".") != 2 { // as those of each JWT, and of no token in hex
		return nil, errUnknown
	}
	return p.Workflow(token), nil
}

// viewer answers a browser that may see the page, as a viewer.
func (p *page) viewer(r *http.Request) (remudav1.FleetServiceClient, error) {
	_, err := p.access.viewer(r)
	return p.Fleet, err
}

// readsFrom is the key of the client by which a call is answered.
type readsFrom struct{}

// readCalls has the calls that change nothing.
func readCalls() http.Handler {
	mux := http.NewServeMux()
	read(mux, "GetInstance", remudav1.FleetServiceClient.GetInstance)
	read(mux, "ListInstances", remudav1.FleetServiceClient.ListInstances)
	read(mux, "ListPools", remudav1.FleetServiceClient.ListPools)
	read(mux, "ListServices", remudav1.FleetServiceClient.ListServices)
	read(mux, "PlanScaleDown", remudav1.FleetServiceClient.PlanScaleDown)
	read(mux, "ListWaiting", remudav1.FleetServiceClient.ListWaiting)
	read(mux, "ListEvents", remudav1.FleetServiceClient.ListEvents)
	read(mux, "ExplainRun", remudav1.FleetServiceClient.ExplainRun)
	read(mux, "GetCost", remudav1.FleetServiceClient.GetCost)
	read(mux, "ListBudgets", remudav1.FleetServiceClient.ListBudgets)
	read(mux, "GetStatus", remudav1.FleetServiceClient.GetStatus)
	return mux
}

// ownSites are what browsers say of calls of the page's own, and of those that a person makes. Programs say nothing. Another site could not
// read the answer, and each costs reads of the store.
var ownSites = []string{"", "none", "same-origin"}

// read has a call answered.
func read[Request, Response any](
	mux *http.ServeMux, name string, call func(remudav1.FleetServiceClient, context.Context, *Request, ...grpc.CallOption) (*Response, error),
) {
	answer := func(ctx context.Context, r *connect.Request[Request]) (*connect.Response[Response], error) {
		ctx, cancel := context.WithTimeout(ctx, answerWithin)
		defer cancel()
		resp, err := call(ctx.Value(readsFrom{}).(remudav1.FleetServiceClient), ctx, r.Msg)
		if err != nil {
			return nil, refusalOf(err)
		}
		return connect.NewResponse(resp), nil
	}
	mux.Handle(ReadsPath+name, connect.NewUnaryHandler(ReadsPath+name, answer,
		connect.WithIdempotency(connect.IdempotencyNoSideEffects), connect.WithReadMaxBytes(maxRead), connect.WithCodec(strictJSON{"json"}), connect.WithCodec(strictJSON{"json; charset=utf-8"})))
}

// strictJSON is JSON as Connect has it, except that a field that the message does not have is an error, and not ignored.
type strictJSON struct{ name string }

func (c strictJSON) Name() string { return c.name }

func (strictJSON) Marshal(m any) ([]byte, error) { return protojson.Marshal(m.(proto.Message)) }

func (strictJSON) Unmarshal(text []byte, m any) error {
	if len(text) == 0 { // a GET without a message
		return nil
	}
	return protojson.Unmarshal(text, m.(proto.Message))
}

// refusalOf is an error of the contract in the words of Connect, which has the same codes and details.
func refusalOf(err error) error {
	s := status.Convert(err)
	refusal := connect.NewError(connect.Code(s.Code()), errors.New(s.Message()))
	for _, one := range s.Details() {
		m, ok := one.(proto.Message)
		if !ok {
			continue
		}
		if detail, err := connect.NewErrorDetail(m); err == nil {
			refusal.AddDetail(detail)
		}
	}
	return refusal
}
