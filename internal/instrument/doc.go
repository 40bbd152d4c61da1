// Package instrument fills metrics: it wraps ports so that their calls are counted, and sets the gauges that
// are counted on a scrape. internal/telemetry declares the metrics and knows no use-case.
package instrument
