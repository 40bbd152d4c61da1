package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
	"time"
)

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
