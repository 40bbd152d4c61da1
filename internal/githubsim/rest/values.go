package rest

import "time"

// Object is a JSON object in the shape that GitHub's OpenAPI description gives it.
type Object map[string]any

func Time(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(time.RFC3339)
}

func OrNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func IDOrNull(id int64) any {
	if id == 0 {
		return nil
	}
	return id
}
