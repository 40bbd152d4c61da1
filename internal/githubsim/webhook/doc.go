// Package webhook delivers events to a receiver as GitHub does: signed, in order for each run, and never sent again unasked.
package webhook
