package page

import (
	"context"
	"net/http"

	views "github.com/remuda-ci/remuda/internal/cli/view"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// server is which controlds are alive, and how old their certificates and keys are.
func (p *page) server(ctx context.Context, _ *http.Request) (view, error) {
	v, now := view{Title: "Server", Live: true}, p.Now()
	resp, err := p.Fleet.GetStatus(ctx, &remudav1.GetStatusRequest{})
	if err != nil {
		return v, err
	}
	if h := resp.GetHold(); h != nil {
		v.Text = append(v.Text, views.Hold(h))
	}
	v.Tables = []htmlTable{
		tableOf("Controlds", views.Replicas(resp.GetReplicas(), now), "Which controlds are alive is not known."),
		tableOf("Certificates and keys of the one that answers", views.Credentials(resp.GetCredentials(), now), "Its configuration names none."),
	}
	return v, nil
}
