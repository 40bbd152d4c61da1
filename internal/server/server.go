// Package server offers the fleet over gRPC: it checks and bounds what comes
// in, maps it to the use-cases, and maps their answers and errors back.
package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"buf.build/go/protovalidate"
	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/stats"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle/replicas"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

const (
	// maxMessage bounds a request; ours are below 100 KiB. It is read before its caller is known.
	maxMessage = 256 << 10
	// maxHeaders bounds the metadata of a call, in bytes: an ID token is the
	// largest of it, and is bounded by who checks it.
	maxHeaders = 64 << 10
	// maxStreams bounds the calls under way on one connection.
	maxStreams = 250
	// readyWithin bounds one look at whether we can serve.
	readyWithin = 5 * time.Second
)

// Metrics counts requests.
type Metrics interface {
	Requested(method, code string, d time.Duration)
}

// Options are the parts of a Server. Fleet is required.
type Options struct {
	Fleet   *fleet.Fleet
	Log     hclog.Logger
	Metrics Metrics
	// TLS is nil for plaintext, which is served on loopback only.
	TLS *tls.Config
	// Callers is who may call, and what.
	Callers Callers
	// Patience is how long a call that has done nothing yet goes on while a dependency
	// is unavailable; 0 means 5 s. Then the call fails with UNAVAILABLE.
	Patience time.Duration
	// Ready says whether requests can be served: nil, or what is not there.
	Ready func(context.Context) error
	// StatsHandler traces the calls. It may be nil.
	StatsHandler stats.Handler
	// ReadyEvery is how often the health service asks; 0 means 5 s.
	ReadyEvery time.Duration
	// Replica names this process, and Replicas are those that are alive; nil: they are not known.
	Replica  string
	Replicas func(context.Context) ([]replicas.Replica, error)
	// Credentials are the certificates and keys of this process; nil: they are not known.
	Credentials func() []Credential
	// Now is the clock of the answers; nil: time.Now.
	Now func() time.Time
}

// Server is the gRPC side of controld.
type Server struct {
	grpc    *grpc.Server
	health  *health.Server
	ready   func(context.Context) error
	every   time.Duration // between two looks at ready
	log     hclog.Logger
	plain   bool
	service *service
	stats   stats.Handler // nil: calls are not traced
	// workers takes in JSON what the WorkerService takes.
	workers   *WorkerJSON
	followers *followers
	// stopping ends the streams, which GracefulStop would wait for; handOver
	// ends the calls that still wait for hosts when the time to stop is up.
	stopping, handOver context.Context
	stop, handOverNow  context.CancelFunc
}

// New builds a server that does not listen yet.
func New(o Options) (*Server, error) {
	if o.Fleet == nil {
		return nil, errors.New("new server: a fleet is required")
	}
	if err := o.Callers.validate(); err != nil {
		return nil, fmt.Errorf("new server: %w", err)
	}
	validator, err := protovalidate.New()
	if err != nil {
		return nil, fmt.Errorf("new server: %w", err)
	}
	o.Patience = cmp.Or(o.Patience, 5*time.Second)
	o.ReadyEvery = cmp.Or(o.ReadyEvery, 5*time.Second)
	o.Log = cmp.Or(o.Log, hclog.NewNullLogger())
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{ready: o.Ready, every: o.ReadyEvery, log: o.Log, plain: o.TLS == nil, health: health.NewServer(), stats: o.StatsHandler}
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.handOver, s.handOverNow = context.WithCancel(context.Background())
	edge := &interceptors{log: o.Log, metrics: o.Metrics, validator: validator, callers: o.Callers, stopping: s.stopping}
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Minute, Timeout: 20 * time.Second}),
		grpc.UnaryInterceptor(edge.unary),
		grpc.StreamInterceptor(edge.stream),
		// What a call uses, such as the store, is closed after Stop.
		grpc.WaitForHandlers(true),
	}
	if o.StatsHandler != nil {
		options = append(options, grpc.StatsHandler(o.StatsHandler))
	}
	if o.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(o.TLS)))
	}
	s.grpc = grpc.NewServer(options...)
	s.followers = &followers{
		fleet: o.Fleet, log: o.Log, patience: o.Patience, stopping: s.stopping, places: make(chan struct{}, followAtMost),
	}
	fleet := &service{
		fleet: o.Fleet, log: o.Log, callers: o.Callers, patience: o.Patience, now: o.Now,
		replica: o.Replica, replicas: o.Replicas, credentials: o.Credentials,
		watchers: make(chan struct{}, maxWatchers), followers: s.followers, stopping: s.stopping, handOver: s.handOver,
	}
	s.service = fleet
	s.workers = &WorkerJSON{edge: edge, workers: &workers{fleet: o.Fleet, errors: fleet.toStatus}}
	remudav1.RegisterFleetServiceServer(s.grpc, fleet)
	remudav1.RegisterWorkerServiceServer(s.grpc, s.workers.workers)
	healthv1.RegisterHealthServer(s.grpc, s.health)
	reflection.Register(s.grpc)
	return s, nil
}

// Workers takes in JSON what the WorkerService takes.
func (s *Server) Workers() *WorkerJSON { return s.workers }

// Serve answers until Stop. Plaintext is refused off loopback, since every caller may order and end hosts.
func (s *Server) Serve(l net.Listener) error {
	if s.plain && !loopback(l.Addr()) {
		return fmt.Errorf("serve gRPC on %s: plaintext is for loopback only; configure grpc.tls", l.Addr())
	}
	go s.watchHealth()
	if err := s.grpc.Serve(l); err != nil {
		return fmt.Errorf("serve gRPC on %s: %w", l.Addr(), err)
	}
	return nil
}

// loopback reports whether an address is reachable from this machine alone. So is a listener in memory.
func loopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return !ok || tcp.IP.IsLoopback()
}

// watchHealth keeps the health service in step with Options.Ready.
func (s *Server) watchHealth() {
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	for {
		s.setHealth()
		select {
		case <-s.stopping.Done():
			return
		case <-tick.C:
		}
	}
}

func (s *Server) setHealth() {
	status := healthv1.HealthCheckResponse_SERVING
	if s.ready != nil {
		ctx, cancel := context.WithTimeout(s.stopping, readyWithin)
		defer cancel()
		if s.ready(ctx) != nil {
			status = healthv1.HealthCheckResponse_NOT_SERVING
		}
	}
	s.health.SetServingStatus("", status)
	s.health.SetServingStatus(remudav1.FleetService_ServiceDesc.ServiceName, status)
	s.health.SetServingStatus(remudav1.WorkerService_ServiceDesc.ServiceName, status)
}

// handOverWithin is what calls that wait for hosts get to answer that controld stops.
const handOverWithin = 500 * time.Millisecond

// Stop ends the streams and lets calls finish until ctx ends. Then calls that wait for
// hosts get UNAVAILABLE with a delay to retry after, and the rest is cut off. Their
// work is in the store, and goes on elsewhere. No call runs once Stop returns.
func (s *Server) Stop(ctx context.Context) {
	s.health.Shutdown()
	s.stop()
	defer s.followers.running.Wait()
	finished := make(chan struct{})
	go func() {
		s.grpc.GracefulStop()
		close(finished)
	}()
	select {
	case <-finished:
		return
	case <-ctx.Done():
	}
	s.handOverNow()
	select {
	case <-finished:
	case <-time.After(handOverWithin):
		s.log.Warn("calls cut off at shutdown")
		s.grpc.Stop()
		<-finished
	}
}

// reloadEvery is how often the certificate's files are looked at for a new
// one; rotation then needs no restart.
const reloadEvery = time.Minute

// LoadTLS reads the server's certificate and, for operators, the authorities of their certificates (empty:
// callers are asked for none). Workflows have none to show, so that one is there is not for TLS to say; one
// that is must be good. Its errors name the file. A certificate that is renewed on disk is taken up by
// itself.
func LoadTLS(certFile, keyFile, clientCAFile string) (*tls.Config, error) {
	source := &certificate{certFile: certFile, keyFile: keyFile}
	if err := source.load(time.Now()); err != nil {
		return nil, err
	}
	config := &tls.Config{
		MinVersion:     tls.VersionTLS13,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return source.get(time.Now()), nil },
	}
	if clientCAFile == "" {
		return config, nil
	}
	pem, err := os.ReadFile(clientCAFile)
	if err != nil {
		return nil, fmt.Errorf("read client authorities: %w", err)
	}
	config.ClientCAs = x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read client authorities: %s holds no PEM certificate", clientCAFile)
	}
	config.ClientAuth = tls.VerifyClientCertIfGiven
	return config, nil
}

// certificate is the server's own, as its files have it.
type certificate struct {
	certFile, keyFile string

	mu     sync.Mutex
	cert   *tls.Certificate
	looked time.Time
}

func (c *certificate) load(now time.Time) error {
	cert, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("load certificate %s with key %s: %w", c.certFile, c.keyFile, err)
	}
	c.cert, c.looked = &cert, now
	return nil
}

// get returns the certificate, read again if it was not for a while. One that
// cannot be read (it may be half written) leaves the last in use.
func (c *certificate) get(now time.Time) *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.looked) >= reloadEvery && c.load(now) != nil {
		c.looked = now
	}
	return c.cert
}
