package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/remuda-ci/remuda/internal/cli/failure"
)

const (
	// probeWithin bounds a look at a connection that failed.
	probeWithin = 5 * time.Second
	// answerWithin is how long the first byte is waited for: a server of HTTP/2 speaks at once, and one that refuses a
	// client certificate says so only after the handshake.
	answerWithin = time.Second
)

// preface is how a client of HTTP/2 begins.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"

// Handshake is what a probe has found.
type Handshake struct {
	// Took is how long the connection and its handshake took.
	Took time.Duration
	// TLS is absent for a connection without it.
	TLS *tls.ConnectionState
}

// Probe connects once as a call does and says what is wrong, by the types of the errors: gRPC keeps only their text.
func (t Target) Probe(ctx context.Context) (Handshake, error) {
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	begin := time.Now()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", t.Address)
	if err != nil {
		return Handshake{}, t.why(err)
	}
	defer func() { _ = conn.Close() }() // nothing is lost with it
	if t.Plain() {
		took := time.Since(begin)
		err := speaksHTTP2(conn)
		if errors.Is(err, errSilent) && t.speaksTLS(ctx) {
			err = errTLS
		}
		return Handshake{Took: took}, t.why(err)
	}
	config, err := t.tlsConfig()
	if err != nil {
		return Handshake{}, failure.Of("connect to "+t.Address, err)
	}
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		return Handshake{}, t.why(err)
	}
	state := secured.ConnectionState()
	return Handshake{Took: time.Since(begin), TLS: &state}, t.why(speaksHTTP2(secured))
}

// errTLS and errSilent are what is wrong with a server that does not speak HTTP/2.
var (
	errTLS    = errors.New("the server speaks TLS, and this connection is without it")
	errSilent = errors.New("the server does not speak gRPC")
)

// speaksHTTP2 sends the preface and looks at the first bytes of the answer.
func speaksHTTP2(conn net.Conn) error {
	_ = conn.SetDeadline(time.Now().Add(answerWithin)) // an error shows in the next call
	if _, err := io.WriteString(conn, preface); err != nil {
		return err
	}
	var first [9]byte
	n, err := io.ReadFull(conn, first[:])
	switch {
	case n == len(first) && first[3] == 4: // the frame of the settings
		return nil
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, os.ErrDeadlineExceeded):
		return err
	}
	return errSilent
}

// speaksTLS reports whether a server that does not answer in plaintext does so with TLS. Nothing is sent to it, so it
// does not matter whose certificate it shows.
func (t Target) speaksTLS(ctx context.Context) bool {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	conn, err := dialer.DialContext(ctx, "tcp", t.Address)
	if err != nil {
		return false
	}
	_ = conn.Close() // nothing was sent
	return true
}

// why is an error of a connection with what to do about it.
func (t Target) why(err error) error {
	if err == nil {
		return nil
	}
	e := &failure.Error{Code: failure.Unavailable, Doing: "connect to " + t.Address, Err: err}
	e.Remedy, e.Err = t.remedy(err)
	return e
}

// remedy says what to do about an error, and why it happened in plain words.
func (t Target) remedy(err error) (string, error) {
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED) && t.loopback():
		return "Is `controld dev` running on this machine? `make run` starts it. For another controld: `remuda login`, or --address.", errors.New("connection refused")
	case errors.Is(err, syscall.ECONNREFUSED):
		return "Is controld running there, and is this the port of `grpc.addr`?", errors.New("connection refused")
	case errors.As(err, &dns) && !dns.IsNotFound:
		return "Is there a network, and does its resolver answer?", fmt.Errorf("look up %s: %s", dns.Name, dns.Err)
	case errors.As(err, &dns):
		return "Correct the address: `remuda context list` shows it.", fmt.Errorf("no such host: %s", dns.Name)
	case errors.Is(err, errTLS):
		return "Give what its certificate is checked against: `remuda login NAME --address " + t.Address + " --ca FILE`.", err
	case errors.Is(err, errSilent):
		return "Is this the port of `grpc.addr`? The webhooks have another one.", err
	case errors.As(err, &op) && op.Op == "remote error":
		return t.refused(op)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), isTimeout(err):
		return "A firewall or a security group may drop the packets, or the address is of another machine.", errors.New("no answer")
	}
	return t.wrongCertificate(err)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// refused is an alert that the server sent: it does not like what the client shows.
func (t Target) refused(op *net.OpError) (string, error) {
	if t.CertFile == "" {
		return "Give one to `remuda login` with --cert and --key; `controld ca issue` makes it.", fmt.Errorf("the server wants a client certificate (%w)", op.Err)
	}
	expired := ""
	if c, err := ReadCertificate(t.CertFile); err == nil && time.Now().After(c.NotAfter) {
		expired = fmt.Sprintf(" since it expired on %s", c.NotAfter.UTC().Format(time.DateOnly))
	}
	return "It has to be valid and of an authority in `grpc.tls.client_ca_file`; `controld ca issue --replace` renews it.",
		fmt.Errorf("the server refuses the client certificate %s%s (%w)", t.CertFile, expired, op.Err)
}

// wrongCertificate is an error about the server's certificate, or one that has no explanation.
func (t Target) wrongCertificate(err error) (string, error) {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &authority) && t.CAFile == "":
		return "Name its authority with --ca (`ca.pem` of `controld ca init`).", errors.New("the certificate of controld is of an authority that this system does not know")
	case errors.As(err, &authority):
		return "Use the `ca.pem` that belongs to this controld.", fmt.Errorf("the certificate of controld is not of the authority in %s", t.CAFile)
	case errors.As(err, &name):
		return "Use one of its names as the address, or give it with --server-name.",
			fmt.Errorf("the certificate of controld is for %s, not for %s", names(name.Certificate), name.Host)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && time.Now().Before(invalid.Cert.NotBefore):
		return "Is the clock of this machine right?", fmt.Errorf("the certificate of controld is valid from %s", invalid.Cert.NotBefore.UTC().Format(time.RFC3339))
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "Renew it (`controld ca issue --replace controld`); controld reads it again by itself.",
			fmt.Errorf("the certificate of controld expired on %s", invalid.Cert.NotAfter.UTC().Format(time.RFC3339))
	case errors.As(err, &record):
		return "Is this the port of `grpc.addr`? controld without `grpc.tls` serves loopback only.", errors.New("the server does not speak TLS")
	}
	return "`remuda doctor` looks at the connection step by step.", err
}

// names are those that a certificate is for.
func names(c *x509.Certificate) string {
	all := c.DNSNames
	for _, ip := range c.IPAddresses {
		all = append(all, ip.String())
	}
	if len(all) == 0 {
		return "no name"
	}
	return strings.Join(all, ", ")
}
