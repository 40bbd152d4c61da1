// Package instrument fills metrics from the use-cases and their ports. internal/telemetry
// declares the metrics and knows no use-case.
package instrument
