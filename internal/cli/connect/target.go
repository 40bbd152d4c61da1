// Package connect opens connections to controld and says in plain words why one cannot be opened.
package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	// DefaultAddress is where `controld dev` listens.
	DefaultAddress = "127.0.0.1:7443"
	// defaultPort is that of the examples and templates.
	defaultPort = "7443"
	// maxAnswer bounds an answer: a page of 1,000 hosts has 2 MiB at most.
	maxAnswer = 64 << 20
)

// Target is one controld and what a caller shows it. Files are named, not copied, so that renewed ones count at once.
type Target struct {
	// Address is host:port.
	Address string `yaml:"address"`
	// ServerName is the name in controld's certificate, where it is not the host of the address.
	ServerName string `yaml:"server_name,omitempty"`
	// CAFile has the authorities of controld's certificate; empty: those of the system.
	CAFile string `yaml:"ca_file,omitempty"`
	// CertFile and KeyFile are the client certificate of an operator.
	CertFile string `yaml:"cert_file,omitempty"`
	KeyFile  string `yaml:"key_file,omitempty"`
	// TokenFile has an ID token, which is read for each call.
	TokenFile string `yaml:"token_file,omitempty"`
}

// WithPort adds the default port to an address that has none.
func WithPort(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = strings.Trim(address, "[]"), defaultPort
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil || host == "" || strings.ContainsAny(host, "/ @") {
		return "", fmt.Errorf("%q is not an address: write HOST or HOST:PORT", address)
	}
	return net.JoinHostPort(host, port), nil
}

// Validate checks what fits together, without opening a file.
func (t Target) Validate() error {
	if _, _, err := net.SplitHostPort(t.Address); err != nil {
		return fmt.Errorf("address %q: write HOST:PORT", t.Address)
	}
	switch {
	case (t.CertFile == "") != (t.KeyFile == ""):
		return errors.New("a client certificate needs both its certificate and its key (--cert, --key)")
	case t.CertFile != "" && t.TokenFile != "":
		return errors.New("a caller shows a client certificate or a token, not both")
	}
	return nil
}

// Plain reports whether the connection is without TLS: on loopback, unless something of TLS is configured. controld
// serves plaintext nowhere else.
func (t Target) Plain() bool {
	return t.loopback() && t.CAFile == "" && t.CertFile == "" && t.ServerName == ""
}

func (t Target) loopback() bool {
	host, _, _ := net.SplitHostPort(t.Address)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Open is a connection, which is made with its first call.
func (t Target) Open() (*grpc.ClientConn, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	secured := insecure.NewCredentials()
	if !t.Plain() {
		config, err := t.tlsConfig()
		if err != nil {
			return nil, err
		}
		secured = credentials.NewTLS(config)
	}
	options := []grpc.DialOption{grpc.WithTransportCredentials(secured), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer))}
	if t.TokenFile != "" {
		options = append(options, grpc.WithPerRPCCredentials(bearer{t.TokenFile, !t.Plain()}))
	}
	return grpc.NewClient(t.Address, options...)
}

func (t Target) tlsConfig() (*tls.Config, error) {
	host, _, _ := net.SplitHostPort(t.Address)
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host, NextProtos: []string{"h2"}}
	if t.ServerName != "" {
		c.ServerName = t.ServerName
	}
	if t.CAFile != "" {
		data, err := readSmall(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read authority: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("read authority: %s has no certificate in PEM", t.CAFile)
		}
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read client certificate %s with key %s: %w", t.CertFile, t.KeyFile, err)
		}
		// The certificate is sent whatever authorities the server names: the server then says what it does not like about it.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return c, nil
}

// bearer sends the token of a file with each call.
type bearer struct {
	path   string
	secure bool
}

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	token, err := ReadToken(b.path)
	if err != nil {
		return nil, err
	}
	return map[string]string{"authorization": "Bearer " + token}, nil
}

func (b bearer) RequireTransportSecurity() bool { return b.secure }

// ReadToken reads the token of a file.
func ReadToken(path string) (string, error) {
	data, err := readSmall(path)
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" || strings.ContainsAny(token, "\n\r ") {
		return "", fmt.Errorf("read token: %s does not have exactly one token", path)
	}
	return token, nil
}
