package view

import (
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/cli/table"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// Why is an explanation, a sentence on each line; wide adds the history. Sentences quote what agents, workflows and GitHub say.
func Why(resp *remudav1.ExplainRunResponse, wide bool) string {
	var b strings.Builder
	for _, sentence := range resp.GetSentences() {
		b.WriteString(table.Printable(sentence) + "\n")
	}
	if wide && len(resp.GetEvents()) > 0 {
		b.WriteString("\n" + EventHead(true) + "\n")
		for _, e := range resp.GetEvents() {
			b.WriteString(Event(e, time.UTC, true) + "\n")
		}
	}
	return b.String()
}
