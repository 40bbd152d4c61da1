package inputs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/server"
)

// renewBefore is how long before its end a certificate is warned of: long enough for people to renew it.
const renewBefore = 14 * 24 * time.Hour

// tls reads the server's certificate and key, and the authorities of callers.
func (r *reader) tls() {
	t := r.c.GRPC.TLS
	if t == nil {
		return
	}
	at := r.root.At("grpc", "tls")
	cert := read(at.At("cert_file"), t.CertFile, "a certificate in PEM form", maxPEM)
	key := read(at.At("key_file"), t.KeyFile, "a private key in PEM form", maxPEM)
	if cert != nil && holdsCertificate(at.At("cert_file"), t.CertFile, cert) && key != nil && holdsKey(at.At("key_file"), t.KeyFile, key) {
		r.pair(at, cert, key)
	}
	authorities := at.At("client_ca_file")
	if t.ClientCAFile != "" {
		if data := read(authorities, t.ClientCAFile, "certificates of authorities in PEM form", maxPEM); data != nil {
			r.authorities(authorities, "grpc.tls.client_ca_file", t.ClientCAFile, data)
		}
	}
	if !at.At("cert_file").Fine() || !at.At("key_file").Fine() || !authorities.Fine() {
		return
	}
	var err error
	if r.in.TLS, err = server.LoadTLS(t.CertFile, t.KeyFile, t.ClientCAFile); err != nil {
		at.Errorf("%v", err)
	}
}

// blocks are the types of the PEM blocks of a file.
func blocks(data []byte) (types []string) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		types = append(types, block.Type)
	}
	return types
}

func isKey(kind string) bool { return strings.HasSuffix(kind, "PRIVATE KEY") }

func holdsCertificate(at strictyaml.Place, path string, data []byte) bool {
	kinds := blocks(data)
	switch {
	case slices.Contains(kinds, "CERTIFICATE"):
		return true
	case slices.ContainsFunc(kinds, isKey):
		at.Errorf("%s holds a private key and no certificate; are cert_file and key_file exchanged?", path)
	default:
		at.Errorf("%s holds no certificate; write one in PEM form, from -----BEGIN CERTIFICATE----- on", path)
	}
	return false
}

func holdsKey(at strictyaml.Place, path string, data []byte) bool {
	kinds := blocks(data)
	switch {
	case slices.Contains(kinds, "ENCRYPTED PRIVATE KEY") || bytes.Contains(data, []byte("Proc-Type: 4,ENCRYPTED")):
		at.Errorf("%s holds a key with a password, which controld cannot ask for; write it without one, as `openssl pkey` does", path)
		return false
	case slices.ContainsFunc(kinds, isKey):
		return true
	case slices.Contains(kinds, "CERTIFICATE"):
		at.Errorf("%s holds a certificate and no private key; are cert_file and key_file exchanged?", path)
	default:
		at.Errorf("%s holds no private key; write one in PEM form, from -----BEGIN PRIVATE KEY----- on", path)
	}
	return false
}

// pair says what is wrong with a certificate and a key.
func (r *reader) pair(at strictyaml.Place, cert, key []byte) {
	t := r.c.GRPC.TLS
	first, err := firstCertificate(cert)
	if err != nil {
		at.At("cert_file").Errorf("%s holds a certificate that cannot be read: %v", t.CertFile, err)
		return
	}
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		if strings.Contains(err.Error(), "does not match") || strings.Contains(err.Error(), "type does not match") {
			at.At("key_file").Errorf("%s is not the key of the first certificate in %s (%s); write the key that it was made with", t.KeyFile, t.CertFile, first.Subject)
			return
		}
		at.At("key_file").Errorf("%s holds a key that cannot be read; write an RSA, ECDSA or Ed25519 key in PEM form", t.KeyFile)
		return
	}
	r.valid("grpc.tls.cert_file", t.CertFile, first, "renew it: until then callers refuse the connection")
	r.names(first)
}

func firstCertificate(data []byte) (*x509.Certificate, error) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			return x509.ParseCertificate(block.Bytes)
		}
	}
	return nil, fmt.Errorf("there is none")
}

// valid warns of a certificate whose time is over, has not come, or is about to end. It is no error: controld takes up a
// renewed one without a restart, and the fleet must go on until then.
func (r *reader) valid(key, path string, c *x509.Certificate, remedy string) {
	const day = time.DateOnly + " 15:04 MST"
	switch {
	case r.now.After(c.NotAfter):
		r.warn("%s: %s (%s) has expired on %s; %s", key, path, c.Subject, c.NotAfter.UTC().Format(day), remedy)
	case r.now.Before(c.NotBefore):
		r.warn("%s: %s (%s) is valid only from %s; look at the clock of this machine, or write another one", key, path, c.Subject, c.NotBefore.UTC().Format(day))
	case c.NotAfter.Sub(r.now) < renewBefore:
		r.warn("%s: %s (%s) expires on %s; renew it before", key, path, c.Subject, c.NotAfter.UTC().Format(day))
	}
}

func (r *reader) warn(format string, args ...any) {
	r.in.Warnings = append(r.in.Warnings, fmt.Sprintf(format, args...))
}

// names warns of a certificate with which no caller would take the server for the one it calls.
func (r *reader) names(c *x509.Certificate) {
	path := r.c.GRPC.TLS.CertFile
	host, _, err := net.SplitHostPort(r.c.GRPC.Addr)
	ip := net.ParseIP(host)
	switch {
	case len(c.DNSNames)+len(c.IPAddresses) == 0:
		r.warn("grpc.tls.cert_file: %s (%s) is for no DNS name and no IP address, so callers refuse it; "+
			"issue one for the name that callers use, as with `controld ca issue --host NAME`", path, c.Subject)
	case err == nil && host != "" && (ip == nil || !ip.IsUnspecified() && !ip.IsLoopback()) && c.VerifyHostname(host) != nil:
		r.warn("grpc.tls.cert_file: %s (%s) is for %s and not for %s, on which controld listens; callers must use one of those names",
			path, c.Subject, strings.Join(namesOf(c), ", "), host)
	}
	usable := func(u x509.ExtKeyUsage) bool { return u == x509.ExtKeyUsageServerAuth || u == x509.ExtKeyUsageAny }
	if len(c.ExtKeyUsage) > 0 && !slices.ContainsFunc(c.ExtKeyUsage, usable) {
		r.warn("grpc.tls.cert_file: %s (%s) is not for servers, so callers refuse it; issue one for the authentication of servers", path, c.Subject)
	}
}

func namesOf(c *x509.Certificate) []string {
	names := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// authorities looks at a file of certificates of authorities.
func (r *reader) authorities(at strictyaml.Place, key, path string, data []byte) {
	if !holdsCertificate(at, path, data) {
		return
	}
	n := 0
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		n++
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			at.Errorf("%s: certificate %d cannot be read: %v", path, n, err)
			return
		}
		r.valid(key, path, c, "write the new certificate of the authority")
	}
}
