// Package servicemodel checks requests to AWS against AWS's own models of its services, as botocore carries them. The emulators accept a
// request with an unknown member, a misspelled value or a name that is too long; the service would not.
//
// What a model says is checked on the wire, so for clients of every kind: the members that exist and those that are required, types, lengths,
// ranges, enumerations and patterns. What EC2 refuses and its model does not say is in ec2.go.
package servicemodel

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Models are those of one installation of botocore. Each is read when it is first asked for.
type Models struct {
	// dir has a directory for each service.
	dir string

	mu       sync.Mutex
	services map[string]*service
}

// directories are those of services that sign with another name.
var directories = map[string]string{"servicequotas": "service-quotas", "elasticloadbalancing": "elbv2", "monitoring": "cloudwatch"}

// Open is the models in botocore's data directory.
func Open(dir string) *Models { return &Models{dir: dir, services: map[string]*service{}} }

// service is the model of one version of a service's API.
type service struct {
	Metadata struct {
		APIVersion, Protocol, TargetPrefix string
		// Protocols are all that the service takes. Clients choose JSON before the form, as CloudWatch's do.
		Protocols []string
	}
	Operations map[string]struct {
		Input struct{ Shape string }
	}
	Shapes map[string]*shape
}

// shape is a type. Source of the fields: botocore/model.py.
type shape struct {
	Type     string
	Members  map[string]*member
	Required []string
	Enum     []string
	Pattern  string
	Min, Max *float64
	Union    bool
	// Member is that of a list; Key and Value are those of a map.
	Member, Key, Value *member
	Flattened          bool

	once sync.Once
	// These are made of the others when the shape is first used.
	regexp   *regexp.Regexp     // of Pattern; nil if it has none or Go cannot say it
	named    map[string]*member // Members, by their names on the wire
	required []string           // Required, by these names
}

// member is a use of a shape.
type member struct {
	Shape, LocationName, QueryName string
	Flattened                      bool
}

// service is the newest model of a service, by the name that its signatures have.
func (m *Models) service(name string) (*service, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := m.services[name]; ok {
		return s, nil
	}
	versions, err := filepath.Glob(filepath.Join(m.dir, cmp.Or(directories[name], name), "*", "service-2.json.gz"))
	if err != nil || len(versions) == 0 {
		return nil, fmt.Errorf("find the model of service %q in %s: %v", name, m.dir, err)
	}
	s, err := read(slices.Max(versions)) // versions are dates
	if err != nil {
		return nil, fmt.Errorf("read the model of service %q: %w", name, err)
	}
	m.services[name] = s
	return s, nil
}

func read(name string) (*service, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	s := new(service)
	err = json.NewDecoder(text).Decode(s)
	if slices.Contains(s.Metadata.Protocols, "json") {
		s.Metadata.Protocol = "json"
	}
	return s, err
}

// codePoint is how the models write a character by its number.
var codePoint = regexp.MustCompile(`\\u([0-9A-Fa-f]{4})`)

// prepare makes what checks of a shape need.
func (s *service) prepare(of *shape) *shape {
	of.once.Do(func() {
		if of.Pattern != "" {
			of.regexp, _ = regexp.Compile(`^(?:` + codePoint.ReplaceAllString(of.Pattern, `\x{$1}`) + `)$`)
		}
		of.named = make(map[string]*member, len(of.Members))
		for name, m := range of.Members {
			of.named[s.wireName(name, m)] = m
		}
		for _, name := range of.Required {
			of.required = append(of.required, s.wireName(name, of.Members[name]))
		}
		slices.Sort(of.required)
	})
	return of
}

// matches reports whether a string is of the shape's pattern. The whole string has to be: the models leave out the anchors that the services
// apply. Look-ahead and halves of surrogate pairs are unknown to Go; such a pattern allows everything.
func (s *shape) matches(text string) bool {
	return s.regexp == nil || s.regexp.MatchString(text)
}

// wireName is the name of a structure's member in a request. Source: botocore/serialize.py.
func (s *service) wireName(name string, m *member) string {
	switch {
	case s.Metadata.Protocol != "ec2":
		if m.LocationName != "" {
			return m.LocationName
		}
	case m.QueryName != "":
		return m.QueryName
	case m.LocationName != "":
		return strings.ToUpper(m.LocationName[:1]) + m.LocationName[1:]
	}
	return name
}
