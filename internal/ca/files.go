package ca

import (
	"crypto/ecdsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/remuda-ci/remuda/internal/safefile"
)

// The files can be read by their owner alone. A certificate is no secret, but its directory has keys.
const fileMode fs.FileMode = 0o600

// pair is a certificate with its key, and where both go.
type pair struct {
	cert              *x509.Certificate
	key               *ecdsa.PrivateKey
	certFile, keyFile string
	kind              string
}

// write writes both files, each as a whole. With replace, a reader between the two writes finds a key that is not that of the
// certificate: controld then keeps the pair that it has, and looks again a minute later.
func write(p pair, replace bool) ([]File, error) {
	der, err := x509.MarshalPKCS8PrivateKey(p.key)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", p.keyFile, err)
	}
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.cert.Raw})
	subject, err := subjectOf(p.cert)
	if err != nil {
		return nil, err
	}
	until := p.cert.NotAfter.UTC().Truncate(time.Second)
	files := []File{{Path: p.certFile, Kind: p.kind, Subject: subject, NotAfter: &until}, {Path: p.keyFile, Kind: "private key"}}
	if replace {
		if err := safefile.Replace(p.keyFile, key, fileMode, true); err != nil {
			return nil, err
		}
		return files, safefile.Replace(p.certFile, cert, fileMode, true)
	}
	if err := create(p.keyFile, key); err != nil {
		return nil, err
	}
	if err := create(p.certFile, cert); err != nil {
		return nil, errors.Join(err, os.Remove(p.keyFile))
	}
	return files, nil
}

// create writes a file as a whole, unless there is one of that name.
func create(path string, data []byte) error {
	work, err := os.MkdirTemp(filepath.Dir(path), ".new*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work) // what is left after an error does no harm
	whole := filepath.Join(work, "file")
	if err := safefile.Replace(whole, data, fileMode, true); err != nil {
		return err
	}
	// Unlike a rename, a link fails if there is a file.
	if err := os.Link(whole, path); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: %w", path, ErrExists)
	} else if err != nil {
		return err
	}
	return nil
}

// subjectOf returns the subject in the text of RFC 2253, as controld reads it from a caller's certificate.
func subjectOf(cert *x509.Certificate) (string, error) {
	var names pkix.RDNSequence
	if _, err := asn1.Unmarshal(cert.RawSubject, &names); err != nil {
		return "", fmt.Errorf("read the subject: %w", err)
	}
	return names.String(), nil
}
