package page

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/remuda-ci/remuda/internal/logkey"
)

// ReadsPath is where programs read by HTTP, in JSON or as protobuf: the calls of the contract that change nothing, by the protocol Connect
// (connectrpc.com/docs/protocol), which is that of a POST with curl.
const ReadsPath = "/remuda.v1.FleetService/"

// maxRead bounds a request. Each is some names.
const maxRead = 16 << 10

// reads has the calls. Those that change something, and streams, are not here: they need gRPC with a certificate or an ID token.
func (p *page) reads() http.Handler {
	mux, fleet := http.NewServeMux(), p.Fleet
	read(mux, "GetInstance", fleet.GetInstance)
	read(mux, "ListInstances", fleet.ListInstances)
	read(mux, "ListPools", fleet.ListPools)
	read(mux, "ListServices", fleet.ListServices)
	read(mux, "PlanScaleDown", fleet.PlanScaleDown)
	read(mux, "ListWaiting", fleet.ListWaiting)
	read(mux, "ListEvents", fleet.ListEvents)
	read(mux, "ExplainRun", fleet.ExplainRun)
	read(mux, "GetCost", fleet.GetCost)
	read(mux, "ListBudgets", fleet.ListBudgets)
	read(mux, "GetStatus", fleet.GetStatus)
	refusal := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := p.access.check(r)
		switch {
		case !slices.Contains(ownSites, r.Header.Get("Sec-Fetch-Site")):
			err = connect.NewError(connect.CodePermissionDenied, errors.New("a page of another site asks, in a browser"))
		case err == nil:
			mux.ServeHTTP(w, r)
			return
		case errors.Is(err, errNoTokens):
			err = connect.NewError(connect.CodePermissionDenied, err)
		case errors.Is(err, errUnknown):
			w.Header().Set("WWW-Authenticate", "Bearer")
			err = connect.NewError(connect.CodeUnauthenticated, errors.New("a token of page.token_file is required, over HTTPS: Authorization: Bearer TOKEN"))
		default:
			p.Log.Error("a caller of the page cannot be checked", logkey.Error, err)
			err = connect.NewError(connect.CodeUnavailable, errors.New("the tokens of the page cannot be read now"))
		}
		_ = refusal.Write(w, r, err) // the caller has left
	})
}

// ownSites are what browsers say of calls of the page's own, and of those that a person makes. Programs say nothing. Another site could not
// read the answer, and each costs reads of the store.
var ownSites = []string{"", "none", "same-origin"}

// read has a call answered.
func read[Request, Response any](mux *http.ServeMux, name string, call func(context.Context, *Request, ...grpc.CallOption) (*Response, error)) {
	answer := func(ctx context.Context, r *connect.Request[Request]) (*connect.Response[Response], error) {
		ctx, cancel := context.WithTimeout(ctx, answerWithin)
		defer cancel()
		resp, err := call(ctx, r.Msg)
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
