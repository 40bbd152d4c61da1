package catalogue_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/compute/catalogue"
)

// TestPublished compares the catalogue with numbers copied from EC2's pages, so
// that a slip in the compact table shows.
func TestPublished(t *testing.T) {
	byName := map[string]catalogue.Type{}
	for _, typ := range catalogue.All() {
		if _, twice := byName[typ.Name]; twice {
			t.Errorf("%s is in the catalogue twice", typ.Name)
		}
		byName[typ.Name] = typ
	}
	for _, want := range []catalogue.Type{
		{Name: "c5.large", CPU: 2, MemoryMiB: 4096, Arch: "x86_64"},
		{Name: "c5.4xlarge", CPU: 16, MemoryMiB: 32768, Arch: "x86_64"},
		{Name: "c6i.large", CPU: 2, MemoryMiB: 4096, Arch: "x86_64"},
		{Name: "c6a.8xlarge", CPU: 32, MemoryMiB: 65536, Arch: "x86_64"},
		{Name: "c6a.12xlarge", CPU: 48, MemoryMiB: 98304, Arch: "x86_64"},
		{Name: "c7g.16xlarge", CPU: 64, MemoryMiB: 131072, Arch: "arm64"},
		{Name: "r5.16xlarge", CPU: 64, MemoryMiB: 524288, Arch: "x86_64"},
		{Name: "c7g.2xlarge", CPU: 8, MemoryMiB: 16384, Arch: "arm64"},
		{Name: "m5.xlarge", CPU: 4, MemoryMiB: 16384, Arch: "x86_64"},
		{Name: "m6i.8xlarge", CPU: 32, MemoryMiB: 131072, Arch: "x86_64"},
		{Name: "m7g.large", CPU: 2, MemoryMiB: 8192, Arch: "arm64"},
		{Name: "r5.8xlarge", CPU: 32, MemoryMiB: 262144, Arch: "x86_64"},
		{Name: "r6i.large", CPU: 2, MemoryMiB: 16384, Arch: "x86_64"},
		{Name: "r7g.4xlarge", CPU: 16, MemoryMiB: 131072, Arch: "arm64"},
	} {
		if diff := cmp.Diff(want, byName[want.Name]); diff != "" {
			t.Errorf("%s (-published +catalogue):\n%s", want.Name, diff)
		}
	}
	if typ, ok := byName["c5.8xlarge"]; ok {
		t.Errorf("the catalogue has %+v, which EC2 does not sell", typ)
	}
}

func TestSelect(t *testing.T) {
	large := catalogue.Need{CPU: 2, MemoryMiB: 4096}
	tests := map[string]struct {
		need     catalogue.Need
		patterns []string
		arch     string
		want     string
	}{
		"one type":                {large, []string{"c6i.large"}, "", "c6i.large"},
		"at most twice":           {large, []string{"m6i.*", "c6i.*"}, "", "c6i.large m6i.large c6i.xlarge"},
		"smallest first, by name": {large, []string{"c5*", "c6*"}, "x86_64", "c5.large c5a.large c6a.large c6i.large c5.xlarge c5a.xlarge c6a.xlarge c6i.xlarge"},
		"other architecture":      {large, []string{"c*"}, "arm64", "c6g.large c7g.large c8g.large c6g.xlarge c7g.xlarge c8g.xlarge"},
		"too much is better than none, of the smallest size": {large, []string{"r5*"}, "", "r5.large r5a.large r5n.large"},
		"more memory needs a larger type":                    {catalogue.Need{CPU: 2, MemoryMiB: 16384}, []string{"c6i.*"}, "", "c6i.2xlarge"},
		"between two sizes":                                  {catalogue.Need{CPU: 5, MemoryMiB: 9000}, []string{"c6i.*"}, "", "c6i.2xlarge"},
		"a star in the middle":                               {large, []string{"m*.large"}, "arm64", "m6g.large m7g.large m8g.large"},
		"no need":                                            {catalogue.Need{}, []string{"m5.*"}, "", "m5.large"},
		"no such family":                                     {large, []string{"g5.*"}, "", ""},
		"larger than anything":                               {catalogue.Need{CPU: 65, MemoryMiB: 1}, nil, "", ""},
		"pattern of another architecture":                    {large, []string{"m7g.*"}, "x86_64", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			types, err := catalogue.Select(test.need, test.patterns, test.arch)
			if err != nil {
				t.Fatalf("select: %v", err)
			}
			var names []string
			for _, typ := range types {
				names = append(names, typ.Name)
			}
			if diff := cmp.Diff(test.want, strings.Join(names, " ")); diff != "" {
				t.Errorf("types (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSelectSatisfies asks for every size of resource class.
func TestSelectSatisfies(t *testing.T) {
	for cpu := 1; cpu <= 32; cpu++ {
		for memory := 1024; memory <= 8192*cpu; memory *= 2 {
			types, err := catalogue.Select(catalogue.Need{CPU: cpu, MemoryMiB: memory}, nil, "")
			if err != nil || len(types) == 0 {
				t.Fatalf("%d vCPU and %d MiB: got %d types, %v", cpu, memory, len(types), err)
			}
			for _, typ := range types {
				if typ.CPU < cpu || typ.MemoryMiB < memory {
					t.Errorf("%+v does not satisfy %d vCPU and %d MiB", typ, cpu, memory)
				}
			}
		}
	}
}

func TestBadPattern(t *testing.T) {
	for _, bad := range []string{"", "c[5", "C5.*", "c5 large", "c?.large", `c\*`, strings.Repeat("c", 65)} {
		_, err := catalogue.Select(catalogue.Need{CPU: 2}, []string{"c*", bad}, "")
		var wrong *catalogue.PatternError
		if !errors.As(err, &wrong) || wrong.Pattern != bad {
			t.Errorf("pattern %q: got error %v, want a PatternError that names it", bad, err)
		}
		if catalogue.Match(bad, "c5.large") {
			t.Errorf("pattern %q matches c5.large", bad)
		}
	}
}
