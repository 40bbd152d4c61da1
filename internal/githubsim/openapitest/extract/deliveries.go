package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// events are those whose examples are taken.
var events = []string{"workflow_job", "workflow_run"}

type example struct {
	Name     string           `json:"name"`
	Examples []map[string]any `json:"examples"`
}

// extractDeliveries writes one file for each example, named by its event, its action and its number among these.
func extractDeliveries(path, source, dir string) error {
	var all []example
	if err := read(path, &all); err != nil {
		return err
	}
	if err := removeOld(dir); err != nil {
		return err
	}
	taken := 0
	for _, e := range all {
		if !slices.Contains(events, e.Name) {
			continue
		}
		numbers := map[any]int{}
		for _, payload := range e.Examples {
			action := payload["action"]
			numbers[action]++
			name := fmt.Sprintf("%s.%v.%d.json", e.Name, action, numbers[action])
			if err := write(filepath.Join(dir, name), payload); err != nil {
				return err
			}
			taken++
		}
	}
	if taken == 0 {
		return fmt.Errorf("%s has no example of %v", path, events)
	}
	return os.WriteFile(filepath.Join(dir, "README.md"), []byte(fmt.Sprintf(readme, source)), 0o644)
}

// removeOld removes the deliveries of an earlier time.
func removeOld(dir string) error {
	old, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return err
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

const readme = `# Example deliveries

GitHub's own examples of the events workflow_job and workflow_run, from the npm package %s (MIT license),
as its api.github.com/index.json has them. The names are event, action and number. scripts/openapi made this directory: do not edit it.
`
