package config

import (
	"net/url"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
)

// Tracing says where spans of what controld does go.
type Tracing struct {
	// Endpoint is the address of OTLP over gRPC; empty: there are no spans.
	Endpoint string `yaml:"endpoint"`
	// CAFile has the authorities, beside those of the system, of its certificate.
	CAFile string `yaml:"ca_file"`
	// HeadersFile has what goes with each batch of spans, "name: value" in each line.
	HeadersFile string `yaml:"headers_file"`
	// SamplePercent is how many of 100 traces are sent.
	SamplePercent int `yaml:"sample_percent"`
}

func (t Tracing) validate(at strictyaml.Place) {
	at.At("sample_percent").Number(t.SamplePercent, 1, 100)
	if t.Endpoint == "" {
		for _, key := range []string{"ca_file", "headers_file"} {
			if at.At(key).Written() {
				at.At(key).Errorf("means nothing without an endpoint; add it, or remove this")
			}
		}
		return
	}
	const want = "the address of a collector that takes OTLP over gRPC; write https://HOST:4317, or http for one on this machine"
	baseURL(at.At("endpoint"), t.Endpoint, want, "would send what runs where in plaintext")
	u, err := url.Parse(t.Endpoint)
	switch {
	case err == nil && (u.Port() == "" || u.Path != ""):
		at.At("endpoint").Errorf("is not %s", want)
	case err == nil && u.Scheme == "http" && t.CAFile != "":
		at.At("ca_file").Errorf("means nothing with an endpoint of http; leave it out")
	}
	at.At("ca_file").OptionalPath(t.CAFile)
	at.At("headers_file").OptionalPath(t.HeadersFile)
}
