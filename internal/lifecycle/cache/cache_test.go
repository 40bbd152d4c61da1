package cache_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
)

// spec is a cache with nothing wrong, changed.
func spec(change func(*cache.Spec)) cache.Spec {
	s := cache.Spec{Name: "go", Paths: []string{"~/go/pkg/mod", "~/.cache/go-build"}, Size: 4 << 30, From: []string{"main", "release/*"}, Keep: 24 * time.Hour}
	if change != nil {
		change(&s)
	}
	return s
}

func TestValidate(t *testing.T) {
	t.Parallel()
	paths := func(list ...string) func(*cache.Spec) { return func(s *cache.Spec) { s.Paths = list } }
	tests := map[string]struct {
		change func(*cache.Spec)
		want   string // part of the error; empty: none
	}{
		"sound":                      {nil, ""},
		"the defaults":               {func(s *cache.Spec) { s.Scope, s.From, s.Keep = "", nil, 0 }, ""},
		"scope of the owner":         {func(s *cache.Spec) { s.Scope = cache.ScopeOwner }, ""},
		"no name":                    {func(s *cache.Spec) { s.Name = "" }, "name"},
		"a digit first":              {func(s *cache.Spec) { s.Name = "7zip" }, "name"},
		"upper case":                 {func(s *cache.Spec) { s.Name = "Go" }, "name"},
		"a slash":                    {func(s *cache.Spec) { s.Name = "a/b" }, "name"},
		"a line":                     {func(s *cache.Spec) { s.Name = "go\n" }, "name"},
		"32 characters":              {func(s *cache.Spec) { s.Name = strings.Repeat("a", 32) }, ""},
		"33 characters":              {func(s *cache.Spec) { s.Name = strings.Repeat("a", 33) }, "name"},
		"of files":                   {func(s *cache.Spec) { s.Holds = cache.HoldsFiles }, ""},
		"of tools":                   {func(s *cache.Spec) { s.Holds, s.Paths = cache.HoldsTools, nil }, ""},
		"of tools, with a path":      {func(s *cache.Spec) { s.Holds = cache.HoldsTools }, "leave them out"},
		"of actions":                 {func(s *cache.Spec) { s.Holds, s.Paths = cache.HoldsActions, nil }, ""},
		"of docker":                  {func(s *cache.Spec) { s.Holds, s.Paths = cache.HoldsDocker, nil }, ""},
		"of docker, with a path":     {func(s *cache.Spec) { s.Holds = cache.HoldsDocker }, "leave them out"},
		"of what there is not":       {func(s *cache.Spec) { s.Holds = "images" }, "holds"},
		"no path":                    {paths(), "paths"},
		"nine paths":                 {paths("~/a", "~/b", "~/c", "~/d", "~/e", "~/f", "~/g", "~/h", "~/i"), "paths"},
		"an absolute path":           {paths("/etc"), "~/"},
		"the home itself":            {paths("~/"), "~/"},
		"another user's home":        {paths("~root/x"), "~/"},
		"up":                         {paths("~/a/../../x"), "clean"},
		"a dot":                      {paths("~/./a"), "clean"},
		"a final slash":              {paths("~/a/"), "clean"},
		"two slashes":                {paths("~//a"), "clean"},
		"a line in a path":           {paths("~/a\nb"), "character"},
		"a comma, as of a mount":     {paths("~/a,b"), "character"},
		"a path that is no text":     {paths("~/\xff"), "character"},
		"a long path":                {paths("~/" + strings.Repeat("a", 255)), "longer"},
		"one inside another":         {paths("~/go", "~/go/pkg"), "inside"},
		"the same twice":             {paths("~/go", "~/go"), "inside"},
		"the beginning of a name":    {paths("~/go", "~/gopher"), ""},
		"no size":                    {func(s *cache.Spec) { s.Size = 0 }, "size"},
		"too large":                  {func(s *cache.Spec) { s.Size = cache.MaxSize + 1 }, "size"},
		"a scope that there is not":  {func(s *cache.Spec) { s.Scope = "fleet" }, "scope"},
		"kept for a minute":          {func(s *cache.Spec) { s.Keep = time.Minute }, "keep"},
		"kept for a year":            {func(s *cache.Spec) { s.Keep = 365 * 24 * time.Hour }, "keep"},
		"negative keep":              {func(s *cache.Spec) { s.Keep = -time.Hour }, "keep"},
		"an empty pattern":           {func(s *cache.Spec) { s.From = []string{""} }, "from"},
		"a line in a pattern":        {func(s *cache.Spec) { s.From = []string{"main\n"} }, "from"},
		"eight paths":                {paths("~/a", "~/b", "~/c", "~/d", "~/e", "~/f", "~/g", "~/h"), ""},
		"the longest path":           {paths("~/" + strings.Repeat("a", cache.MaxPath-2)), ""},
		"a path that does not print": {paths("~/\u200bx"), "character"},
		"the least size":             {func(s *cache.Spec) { s.Size = cache.MinSize }, ""},
		"less than the least size":   {func(s *cache.Spec) { s.Size = cache.MinSize - 1 }, "size"},
		"the largest":                {func(s *cache.Spec) { s.Size = cache.MaxSize }, ""},
		"kept for the least time":    {func(s *cache.Spec) { s.Keep = cache.MinKeep }, ""},
		"kept for less":              {func(s *cache.Spec) { s.Keep = cache.MinKeep - 1 }, "keep"},
		"kept for the longest time":  {func(s *cache.Spec) { s.Keep = cache.MaxKeep }, ""},
		"kept for longer":            {func(s *cache.Spec) { s.Keep = cache.MaxKeep + 1 }, "keep"},
		"of git, of a repository":    {func(s *cache.Spec) { s.Holds, s.Paths = cache.HoldsGit, nil }, ""},
		"of git, of an owner":        {func(s *cache.Spec) { s.Holds, s.Paths, s.Scope = cache.HoldsGit, nil, cache.ScopeOwner }, "one repository"},
		"16 patterns":                {func(s *cache.Spec) { s.From = strings.Split(strings.Repeat("a", 16), "") }, ""},
		"the longest pattern":        {func(s *cache.Spec) { s.From = []string{strings.Repeat("a", cache.MaxPattern)} }, ""},
		"a longer pattern":           {func(s *cache.Spec) { s.From = []string{strings.Repeat("a", cache.MaxPattern+1)} }, "from"},
		"a pattern that begins with what does not print": {func(s *cache.Spec) { s.From = []string{"\x01"} }, "from"},
		"17 patterns": {func(s *cache.Spec) { s.From = make([]string, 17) }, "from"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := spec(tt.change).Validate()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Validate: %v, want one with %q", err, tt.want)
			}
		})
	}
}

// TestBoundsOfKeep: they are in the documents, and others count on them.
func TestBoundsOfKeep(t *testing.T) {
	t.Parallel()
	for keep, want := range map[time.Duration]bool{cache.MinKeep / 2: false, 2 * cache.MinKeep: true, cache.MaxKeep / 2: true, 3 * cache.MaxKeep / 2: false} {
		if err := spec(func(s *cache.Spec) { s.Keep = keep }).Validate(); (err == nil) != want {
			t.Errorf("%s: %v", keep, err)
		}
	}
}

func TestDocker(t *testing.T) {
	t.Parallel()
	files, docker := cache.Spec{Name: "go"}, cache.Spec{Name: "images", Holds: cache.HoldsDocker}
	if got, found := cache.Docker([]cache.Spec{files, docker}); got.Name != "images" || !found {
		t.Errorf("%q (%t) holds docker, want images", got.Name, found)
	}
	if got, found := cache.Docker([]cache.Spec{files}); got.Name != "" || found {
		t.Errorf("%q (%t) holds docker, want none", got.Name, found)
	}
}

// TestOneEntryThatIsUnsound: what follows it in the order of commits is listed still.
func TestOneEntryThatIsUnsound(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_800_000_000, 0).UTC()
	good := cache.Held{Key: strings.Repeat("a", cache.KeyLength), Bytes: 5, CommittedAt: at}
	list := cache.ListOf(cache.Held{Key: "none", CommittedAt: at.Add(time.Hour)}, good)
	if diff := cmp.Diff([]cache.Held{good}, list.Held()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{good.Key}, list.Keys()); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	for name, l := range map[string]cache.List{"no bytes": cache.List(good.Key + "::1"), "no seconds": cache.List(good.Key + ":1:"), "negative seconds": cache.List(good.Key + ":1:-1")} {
		if l.Check() == nil {
			t.Errorf("%s: it is sound", name)
		}
	}
	if err := cache.List(good.Key + ":0:0").Check(); err != nil {
		t.Errorf("an empty cache of 1970: %v", err)
	}
}

func TestValidateAll(t *testing.T) {
	t.Parallel()
	var eight []cache.Spec
	for _, name := range strings.Split("abcdefgh", "") {
		eight = append(eight, cache.Spec{Name: name, Paths: []string{"~/" + name}, Size: 1 << 30})
	}
	npm := cache.Spec{Name: "npm", Paths: []string{"~/.npm"}, Size: 1 << 30}
	nine := make([]cache.Spec, 9)
	tests := map[string]struct {
		specs []cache.Spec
		want  string
	}{
		"none":                  {nil, ""},
		"two":                   {[]cache.Spec{spec(nil), npm}, ""},
		"eight":                 {eight, ""},
		"nine":                  {nine, "at most 8"},
		"the same name":         {[]cache.Spec{npm, {Name: "npm", Paths: []string{"~/x"}, Size: 1 << 30}}, "same name"},
		"a path inside another": {[]cache.Spec{npm, {Name: "x", Paths: []string{"~/.npm/_cacache"}, Size: 1 << 30}}, "inside"},
		"two of tools":          {[]cache.Spec{{Name: "a", Holds: cache.HoldsTools, Size: 1 << 30}, {Name: "b", Holds: cache.HoldsTools, Size: 1 << 30}}, "inside"},
		"files among tools":     {[]cache.Spec{{Name: "a", Holds: cache.HoldsTools, Size: 1 << 30}, {Name: "b", Paths: []string{cache.ToolsPath + "/go"}, Size: 1 << 30}}, "inside"},
		"docker":                {[]cache.Spec{{Name: "a", Holds: cache.HoldsDocker, Size: 1 << 30}}, ""},
		"docker and files":      {[]cache.Spec{npm, {Name: "a", Holds: cache.HoldsDocker, Size: 1 << 30}}, "only cache"},
		"two of docker":         {[]cache.Spec{{Name: "a", Holds: cache.HoldsDocker, Size: 1 << 30}, {Name: "b", Holds: cache.HoldsDocker, Size: 1 << 30}}, "only cache"},
		"one that is unsound":   {[]cache.Spec{npm, {Name: "x"}}, `cache "x"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := cache.ValidateAll(tt.specs)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("ValidateAll: %v, want one with %q", err, tt.want)
			}
		})
	}
}

// TestKey: the keys are part of what is on the disks of hosts, so they stay as they are.
func TestKey(t *testing.T) {
	t.Parallel()
	repository, owner := cache.Spec{Name: "go"}, cache.Spec{Name: "go", Scope: cache.ScopeOwner}
	for _, tt := range []struct {
		spec       cache.Spec
		repository string
		want       string
	}{
		{repository, "acme/shop", "708d7f5c9d8326ba"},
		{repository, "Acme/Shop", "708d7f5c9d8326ba"}, // GitHub's names are the same in any case
		{owner, "acme/shop", "6201903640dddb4f"},
		{owner, "acme", "6201903640dddb4f"},
		{repository, "acme", ""}, // a job of any repository of acme
		{repository, "", ""}, {owner, "", ""},
	} {
		if got := tt.spec.Key(tt.repository); got != tt.want {
			t.Errorf("key of %s for %q: %q, want %q", tt.spec.ScopeOf(), tt.repository, got, tt.want)
		}
	}
	others := map[string]bool{}
	for _, key := range []string{
		repository.Key("acme/shop"), repository.Key("acme/shop2"), owner.Key("acme/shop"), owner.Key("other/shop"),
		cache.Spec{Name: "go2"}.Key("acme/shop"),
	} {
		if others[key] {
			t.Errorf("two caches have the key %s", key)
		}
		others[key] = true
	}
	if diff := cmp.Diff([]string{owner.Key("acme")}, cache.Keys([]cache.Spec{repository, owner}, "acme")); diff != "" {
		t.Errorf("keys of an owner (-want +got):\n%s", diff)
	}
}

func TestOnHosts(t *testing.T) {
	t.Parallel()
	want := []cache.OnHost{
		{Name: "go", Paths: []string{"~/go/pkg/mod", "~/.cache/go-build"}, SizeMiB: 4096, Scope: "repository", Keep: "24h0m0s"},
		{Name: "npm", Paths: []string{"~/.npm"}, SizeMiB: 1, Scope: "owner", Keep: "168h0m0s"},
		{Name: "tools", Holds: "tools", SizeMiB: 1, Scope: "repository", Keep: "168h0m0s"},
	}
	tools := cache.Spec{Name: "tools", Holds: cache.HoldsTools, Size: 1 << 20}
	npm := cache.Spec{Name: "npm", Paths: []string{"~/.npm"}, Size: 1 << 20, Scope: cache.ScopeOwner}
	if diff := cmp.Diff(want, cache.OnHosts([]cache.Spec{spec(func(s *cache.Spec) { s.Holds = cache.HoldsFiles }), npm, tools})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	a := cache.Held{Key: "00000000000000aa", Bytes: 17, CommittedAt: at}
	b := cache.Held{Key: "00000000000000bb", CommittedAt: at.Add(time.Hour)}
	if diff := cmp.Diff([]cache.Held{a, b}, cache.ListOf(b, a, a).Held()); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
	if l, same := cache.ListOf(a, b), cache.ListOf(b, a); l != same || l.Check() != nil {
		t.Errorf("lists of the same caches: %q and %q, %v", l, same, l.Check())
	}
	if got, ok := cache.ListOf(a, b).Has(b.Key); !ok || got != b {
		t.Errorf("has %v %v, want %v", got, ok, b)
	}
	if _, ok := cache.ListOf(a).Has(b.Key); ok {
		t.Error("has a cache that it has not")
	}
	unsound := cache.ListOf(cache.Held{Key: "x"}, cache.Held{Key: a.Key, Bytes: -1}, cache.Held{Key: a.Key})
	if unsound != "" {
		t.Errorf("a list of nothing sound: %q", unsound)
	}
}

// TestListBounds: of many caches those stay that were committed last, and the longest list is one that Check lets through.
func TestListBounds(t *testing.T) {
	t.Parallel()
	last := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	var many []cache.Held
	for i := range 20 {
		many = append(many, cache.Held{Key: strings.Repeat("0", 15) + string("0123456789abcdef"[i%16]), Bytes: 1<<63 - 1, CommittedAt: last.Add(-time.Duration(i) * time.Minute)})
	}
	l := cache.ListOf(many...)
	if err := l.Check(); err != nil || len(l.Held()) != cache.MaxHeld {
		t.Errorf("%d caches, %v", len(l.Held()), err)
	}
	if got, _ := cache.ListOf(many[0], many[16]).Has(many[0].Key); !got.CommittedAt.Equal(last) {
		t.Errorf("of one key twice, that of %s stays, want %s", got.CommittedAt, last)
	}
}

func TestListCheck(t *testing.T) {
	t.Parallel()
	one := "00000000000000aa:1:2"
	many := make([]string, 17)
	for i := range many {
		many[i] = "000000000000000" + string("0123456789abcdefg"[i]) + ":1:2"
	}
	for _, text := range []string{
		",", one + ",", one + "," + one, "00000000000000bb:1:2," + one, "00000000000000AA:1:2", "00000000000000aa", "0a:1:2", one + ":3",
		"00000000000000aa:-1:2", "00000000000000aa:1:-2", "00000000000000aa:01:2", "00000000000000aa:+1:2", "00000000000000aa:1:253402300800",
		"00000000000000aa:1:2\n", strings.Join(many, ","), strings.Repeat("0", 4096),
	} {
		l := cache.List(text)
		if err := l.Check(); err == nil || len(err.Error()) > 160 {
			t.Errorf("%.60q: %v, want a short error", text, err)
		}
		if l.Held() != nil {
			t.Errorf("%.60q: caches of a malformed list", text)
		}
	}
}

// FuzzList: a list that Check lets through is in the one form that ListOf gives it.
func FuzzList(f *testing.F) {
	f.Add("00000000000000aa:1:2,00000000000000bb:0:0")
	f.Fuzz(func(t *testing.T, text string) {
		if l := cache.List(text); l.Check() == nil && cache.ListOf(l.Held()...) != l {
			t.Errorf("%q is written %q", l, cache.ListOf(l.Held()...))
		}
	})
}

func TestSize(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int64]string{
		0: "0 KiB", 1: "1 KiB", 1 << 10: "1 KiB", 1<<10 + 1: "2 KiB", 1<<20 - 1<<10: "1023 KiB", 1<<20 - 1: "1 MiB", 1 << 20: "1 MiB", 3 << 19: "2 MiB",
		1<<30 - 1<<20: "1023 MiB", 1<<30 - 1<<19 - 1: "1023 MiB", 1<<30 - 1<<19: "1.0 GiB", 1<<30 - 1: "1.0 GiB", 1 << 30: "1.0 GiB", 3 << 29: "1.5 GiB",
	} {
		if got := cache.Size(bytes); got != want {
			t.Errorf("%d bytes are %q, want %q", bytes, got, want)
		}
	}
}
