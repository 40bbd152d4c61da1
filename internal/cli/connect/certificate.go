package connect

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"os"
)

// maxFile bounds what is read of a file, in bytes: the authorities of a whole system have 250 KB.
const maxFile = 1 << 20

// readSmall reads a file, also behind a link, as certificates and tokens often are.
func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// ReadCertificate reads the first certificate of a file.
func ReadCertificate(path string) (*x509.Certificate, error) {
	data, err := readSmall(path)
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			return x509.ParseCertificate(block.Bytes)
		}
	}
	return nil, fmt.Errorf("read certificate: %s has no certificate in PEM", path)
}
