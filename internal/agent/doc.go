// Package agent decides what the agent of one host does: it polls the host's record, keeps the host in step with it, and
// reports how that goes in the host's report.
//
// It is level-triggered. Each step looks at the record, at the observed state of the host and at the last report, decides
// on one effect and begins it. The next step finds whatever a step began, even after a restart of the agent. Only Run
// sleeps or reads a clock.
package agent
