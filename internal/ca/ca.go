// Package ca is a private certificate authority in a directory: for controld's certificate and for those of its operators.
package ca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/remuda-ci/remuda/internal/safefile"
)

// The files of an authority.
const (
	certFile = "ca.pem"
	keyFile  = "ca.key"
)

// backdate is how long before its making a certificate becomes valid: the clocks of other machines may be behind.
const backdate = 5 * time.Minute

// ErrExists means that a file is there already. Nothing is replaced unless that was asked for.
var ErrExists = errors.New("it is there already")

// File is a file that was written.
type File struct {
	Path string `json:"path"`
	// Kind is "authority", "server certificate", "client certificate" or "private key".
	Kind string `json:"kind"`
	// Subject is the text of RFC 2253 that callers.operators compares; empty for keys.
	Subject string `json:"subject,omitempty"`
	// NotAfter is when a certificate expires; nil for keys.
	NotAfter *time.Time `json:"not_after,omitempty"`
}

// Request is a certificate that is asked for.
type Request struct {
	// Name is the common name of the subject, and that of the files: NAME.crt and NAME.key.
	Name string
	// Organization of the subject, if any.
	Organization string
	// Hosts are the DNS names and IP addresses of a server. A certificate without any is a client's.
	Hosts []string
	Valid time.Duration
	// Replace lets the files be those of an earlier certificate.
	Replace bool
}

// Options of a new authority.
type Options struct {
	// Name is the common name of its subject.
	Name string
	// Valid is for how long. It bounds every certificate that the authority issues.
	Valid time.Duration
	// Server is the first certificate that the authority issues.
	Server Request
}

// fileName is a name that is good in a path, and in a subject without escapes.
var fileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

// organization is a text that needs no escapes in RFC 2253. X.520 allows 64 characters.
var organization = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9 ._@/-]{0,62}[A-Za-z0-9._@/-])?$`)

// Validate says what is wrong with a request.
func (r Request) Validate() error {
	switch {
	case !fileName.MatchString(r.Name):
		return fmt.Errorf("the name %.80q is not of letters, digits and . _ @ - alone, at most 64 in all", r.Name)
	case r.Name == "ca":
		return errors.New("the name ca is that of the authority itself")
	case r.Organization != "" && !organization.MatchString(r.Organization):
		return fmt.Errorf("the organization %.80q is not of letters, digits, spaces and . _ @ / - alone, at most 64 in all", r.Organization)
	case r.Valid <= 0:
		return errors.New("the certificate is not valid for any time")
	}
	for _, host := range r.Hosts {
		if net.ParseIP(host) == nil && !dnsName.MatchString(host) {
			return fmt.Errorf("%.80q is neither a DNS name nor an IP address", host)
		}
	}
	return nil
}

var dnsName = regexp.MustCompile(`^(\*\.)?([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$`)

// Authority issues certificates.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Init makes a directory with an authority and the certificate of a server. The directory must not exist, or be empty: it comes
// into being with all of its files or not at all.
func Init(dir string, o Options, now time.Time) ([]File, error) {
	if err := o.Server.Validate(); err != nil {
		return nil, err
	}
	if len(o.Server.Hosts) == 0 {
		return nil, errors.New("the server has neither a DNS name nor an IP address")
	}
	dir = filepath.Clean(dir)
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("%s: %w, and is not empty", dir, ErrExists)
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+".new*")
	if err != nil {
		return nil, fmt.Errorf("make the authority: %w", err)
	}
	defer os.RemoveAll(work) // after the rename there is nothing
	files, err := initIn(work, o, now)
	if err != nil {
		return nil, fmt.Errorf("make the authority: %w", err)
	}
	// An empty directory would be in the way of the rename; one that has got files by now is kept.
	if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("make the authority: %w", err)
	}
	if err := os.Rename(work, dir); err != nil {
		return nil, fmt.Errorf("make the authority: %w", err)
	}
	for i := range files {
		files[i].Path = filepath.Join(dir, filepath.Base(files[i].Path))
	}
	return files, nil
}

func initIn(dir string, o Options, now time.Time) ([]File, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: o.Name}, NotBefore: now.Add(-backdate), NotAfter: now.Add(o.Valid),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	a := &Authority{dir: dir, cert: template, key: key}
	if a.cert, err = a.sign(template, &key.PublicKey); err != nil {
		return nil, err
	}
	files, err := write(pair{
		cert: a.cert, key: key, certFile: filepath.Join(dir, certFile), keyFile: filepath.Join(dir, keyFile), kind: "authority",
	}, false)
	if err != nil {
		return nil, err
	}
	of, err := a.Issue(dir, o.Server, now)
	return append(files, of...), err
}

// Open reads the authority of a directory. Its errors name the file.
func Open(dir string) (*Authority, error) {
	a := &Authority{dir: dir}
	der, err := readPEM(filepath.Join(dir, certFile), "CERTIFICATE")
	if err != nil {
		return nil, fmt.Errorf("read the authority: %w", err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("read the authority: %s: %w", certFile, err)
	}
	if der, err = readPEM(filepath.Join(dir, keyFile), "PRIVATE KEY"); err != nil {
		return nil, fmt.Errorf("read the authority: %w", err)
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("read the authority: %s holds no key", keyFile) // the error of the parser may quote the key
	}
	var ok bool
	if a.key, ok = key.(*ecdsa.PrivateKey); !ok || !a.key.PublicKey.Equal(a.cert.PublicKey) {
		return nil, fmt.Errorf("read the authority: the key in %s is not that of the certificate in %s", keyFile, certFile)
	}
	if !a.cert.IsCA {
		return nil, fmt.Errorf("read the authority: the certificate in %s is not that of an authority", certFile)
	}
	return a, nil
}

func readPEM(path, kind string) ([]byte, error) {
	text, err := safefile.Read(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("%s holds no %s in PEM", path, kind)
	}
	return block.Bytes, nil
}

// Issue writes a new key and a certificate for it to a directory, which is made if need be. A server's certificate is good for
// servers alone, and a client's for clients.
func (a *Authority) Issue(dir string, r Request, now time.Time) ([]File, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	until := now.Add(r.Valid).Truncate(time.Second) // a certificate has whole seconds
	if until.After(a.cert.NotAfter) {
		return nil, fmt.Errorf("the certificate would be valid until %s, longer than its authority, which ends at %s",
			until.UTC().Format(time.RFC3339), a.cert.NotAfter.UTC().Format(time.RFC3339))
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	template, kind := r.template(until, now)
	cert, err := a.sign(template, &key.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return write(pair{
		cert: cert, key: key, certFile: filepath.Join(dir, r.Name+".crt"), keyFile: filepath.Join(dir, r.Name+".key"), kind: kind,
	}, r.Replace)
}

// template is the certificate of a request, before it is signed.
func (r Request) template(until, now time.Time) (template *x509.Certificate, kind string) {
	template = &x509.Certificate{
		Subject: pkix.Name{CommonName: r.Name}, NotBefore: now.Add(-backdate), NotAfter: until, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if r.Organization != "" {
		template.Subject.Organization = []string{r.Organization}
	}
	if len(r.Hosts) == 0 {
		return template, "client certificate"
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range r.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return template, "server certificate"
}

// sign makes a certificate. Go draws a serial number of 159 bits, since the template has none.
func (a *Authority) sign(template *x509.Certificate, public *ecdsa.PublicKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, public, a.key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}
