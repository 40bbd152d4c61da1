package openapitest

import (
	"encoding/json"
	"strings"
	"testing"
)

// Delivery fails the test unless the body is as the description says of a delivery of the event with the action that it has.
func Delivery(t testing.TB, event string, body []byte) {
	t.Helper()
	d, err := load()
	if err != nil {
		t.Fatal(err)
	}
	var payload map[string]any
	if err := json.Unmarshal(body, &payload); err != nil {
		t.Errorf("delivery of %s: %v", event, err)
		return
	}
	action, _ := payload["action"].(string)
	name := strings.ReplaceAll("webhook-"+event+"-"+action, "_", "-")
	if err := d.against(name, payload); err != nil {
		for _, wrong := range explain("delivery of "+event+" "+action, err) {
			t.Error(wrong)
		}
	}
}
