package instrument_test

import (
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/instrument"
	"github.com/remuda-ci/remuda/internal/services"
	"github.com/remuda-ci/remuda/internal/services/workqueue"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/telemetry"
)

func scrape(m *telemetry.Metrics) string {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// TestEveryCallIsCounted calls every method of every port. Behind them is
// nothing, so each panics; a method that does not count first is found out, and
// so is one that was added to a port and forgotten here.
func TestEveryCallIsCounted(t *testing.T) {
	metrics := telemetry.NewMetrics()
	calls := func(port string) instrument.Calls { return instrument.Calls{Metrics: metrics, Port: port} }
	countedRows := func(port string) store.Store {
		return store.New(nil).Observed(instrument.Calls{Metrics: metrics, Port: port}.Called)
	}
	for name, port := range map[string]struct{ counted, port any }{
		"store":    {countedRows("store"), (*fleet.Store)(nil)},
		"jobs":     {countedRows("jobs"), (*fleet.JobStore)(nil)},
		"workers":  {countedRows("workers"), (*workqueue.Store)(nil)},
		"services": {instrument.Scaler{Calls: calls("services")}, (*services.Scaler)(nil)},
		"backlog":  {instrument.Backlog{Calls: calls("backlog")}, (*services.Backlog)(nil)},
		"seen":     {countedRows("seen"), (*services.Store)(nil)},
		"guards":   {countedRows("guards"), (*fleet.GuardStore)(nil)},
		"queue":    {instrument.Queue{Calls: calls("queue")}, (*fleet.Queue)(nil)},
		"compute":  {instrument.Compute{Calls: calls("compute")}, (*fleet.Compute)(nil)},
		"github":   {instrument.GitHub{Calls: calls("github")}, (*fleet.GitHub)(nil)},
		"checks":   {instrument.GitHubChecks{Calls: calls("checks")}, (*fleet.GitHubChecks)(nil)},
		"runners":  {instrument.Registrations{Calls: calls("runners")}, (*fleet.Registrations)(nil)},
	} {
		for method := range reflect.TypeOf(port.port).Elem().Methods() {
			callBlindly(reflect.ValueOf(port.counted).MethodByName(method.Name))
			want := `remuda_calls_total{operation="` + name + "." + snake(method.Name) + `",result="ok"} 1` + "\n"
			if !strings.Contains(scrape(metrics), want) {
				t.Errorf("%s of the %s is not counted: want %s", method.Name, name, want)
			}
		}
	}
}

func callBlindly(method reflect.Value) {
	defer func() { _ = recover() }()
	var args []reflect.Value
	for i := range method.Type().NumIn() {
		if !method.Type().IsVariadic() || i < method.Type().NumIn()-1 {
			args = append(args, reflect.Zero(method.Type().In(i)))
		}
	}
	method.Call(args)
}

var word = regexp.MustCompile(`([a-z])([A-Z])`)

// snake is the name of a method in metrics, which stays when the method gets another.
func snake(name string) string {
	name = strings.ReplaceAll(strings.ReplaceAll(name, "SlotTable", "Turns"), "QuotaLedger", "Account")
	return strings.ToLower(word.ReplaceAllString(name, "${1}_${2}"))
}
