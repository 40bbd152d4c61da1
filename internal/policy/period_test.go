package policy_test

import (
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/policy"
)

func cronPeriod(t *testing.T, cron, zone string) policy.Period {
	t.Helper()
	p, err := policy.ParsePeriod(cron, zone, 1, "")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPeriodHolds(t *testing.T) {
	tests := map[string]struct {
		cron, zone string
		holds, not []string
	}{
		"seconds": {"5,50-52 30 12 * * *", "", []string{"2026-01-01T12:30:05Z", "2026-01-01T12:30:51.999Z"},
			[]string{"2026-01-01T12:30:06Z", "2026-01-01T12:30:53Z", "2026-01-01T12:31:05Z"}},
		"minute":                       {"30 12 * * *", "", []string{"2026-01-01T12:30:00Z", "2026-01-01T12:30:59.9Z"}, []string{"2026-01-01T12:29:59.9Z", "2026-01-01T12:31:00Z"}},
		"steps":                        {"*/20 8-12/2 * * *", "", []string{"2026-01-01T08:40:00Z", "2026-01-01T12:00:00Z"}, []string{"2026-01-01T09:40:00Z", "2026-01-01T08:41:00Z"}},
		"a step from a value":          {"50/5 * * * *", "", []string{"2026-01-01T08:50:00Z", "2026-01-01T08:55:00Z"}, []string{"2026-01-01T08:45:00Z", "2026-01-01T08:51:00Z"}},
		"over midnight":                {"* 22-2 * * *", "", []string{"2026-01-01T23:00:00Z", "2026-01-01T02:59:59Z"}, []string{"2026-01-01T21:59:00Z", "2026-01-01T03:00:00Z"}},
		"names":                        {"* * * jan,Mar MON-wed", "", []string{"2026-01-05T00:00:00Z", "2026-03-04T00:00:00Z"}, []string{"2026-02-02T00:00:00Z", "2026-01-01T00:00:00Z"}},
		"Sunday is 0":                  {"* * * * 0", "", []string{"2026-01-04T00:00:00Z"}, []string{"2026-01-03T00:00:00Z", "2026-01-05T00:00:00Z"}},
		"Sunday is 7":                  {"* * * * 7", "", []string{"2026-01-04T00:00:00Z"}, []string{"2026-01-03T00:00:00Z", "2026-01-05T00:00:00Z"}},
		"Saturday and Sunday":          {"* * * * 6-7", "", []string{"2026-01-03T00:00:00Z", "2026-01-04T00:00:00Z"}, []string{"2026-01-05T00:00:00Z", "2026-01-02T00:00:00Z"}},
		"any day, as Quartz":           {"0 * * ? * 1", "", []string{"2026-01-05T00:00:00Z"}, []string{"2026-01-06T00:00:00Z", "2026-01-05T00:00:01Z"}},
		"the last day":                 {"* * L * *", "", []string{"2026-02-28T00:00:00Z", "2028-02-29T00:00:00Z", "2026-04-30T00:00:00Z"}, []string{"2028-02-28T00:00:00Z", "2026-01-30T00:00:00Z"}},
		"the third Friday":             {"* * * * FRI#3", "", []string{"2026-01-16T00:00:00Z"}, []string{"2026-01-09T00:00:00Z", "2026-01-15T00:00:00Z"}},
		"either day":                   {"* * 13 * 5", "", []string{"2026-01-13T00:00:00Z", "2026-01-02T00:00:00Z"}, []string{"2026-01-14T00:00:00Z"}},
		"the day of the month alone":   {"* * 13 * *", "", []string{"2026-01-13T00:00:00Z"}, []string{"2026-01-02T00:00:00Z"}},
		"29 February":                  {"* * 29 2 *", "", []string{"2028-02-29T12:00:00Z", "2000-02-29T12:00:00Z"}, []string{"2026-02-28T12:00:00Z", "2026-03-01T12:00:00Z", "2100-03-01T12:00:00Z"}},
		"the fifth Friday of February": {"* * * 2 FRI#5", "", []string{"2036-02-29T12:00:00Z"}, []string{"2028-02-29T12:00:00Z"}},
		"the first of all":             {"0 0 0 1 1 0", "", []string{"2026-01-01T00:00:00Z"}, []string{"2026-01-01T00:00:01Z"}},
		"the last of all":              {"59 59 23 31 12 *", "", []string{"2026-12-31T23:59:59Z"}, []string{"2026-12-31T23:59:58Z"}},
		"blanks":                       {" \t*  * * *\t* ", "", []string{"2026-01-01T00:00:00Z"}, nil},

		"a zone": {"* 9-17 * * 1-5", "Europe/Amsterdam", []string{"2026-01-05T08:00:00Z", "2026-01-05T16:59:59Z", "2026-07-06T07:00:00Z"},
			[]string{"2026-01-05T07:59:59Z", "2026-01-05T17:00:00Z", "2026-07-06T16:00:00Z"}},
		"another day there":        {"* 0 1 1 *", "Pacific/Auckland", []string{"2025-12-31T11:30:00Z"}, []string{"2026-01-01T00:30:00Z"}},
		"half an hour":             {"30 9 * * *", "Asia/Kolkata", []string{"2026-01-01T04:00:00Z"}, []string{"2026-01-01T09:30:00Z"}},
		"put forward":              {"* 2 * * *", "Europe/Amsterdam", []string{"2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z"}, []string{"2026-03-29T00:59:59Z", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"}},
		"put forward, all day":     {"* * 29 3 *", "Europe/Amsterdam", []string{"2026-03-28T23:00:00Z", "2026-03-29T01:00:00Z", "2026-03-29T21:59:59Z"}, []string{"2026-03-28T22:59:59Z", "2026-03-29T22:00:00Z"}},
		"put forward at midnight":  {"0 0 * * *", "America/Santiago", []string{"2026-09-05T04:00:00Z", "2026-09-07T03:00:00Z"}, []string{"2026-09-06T04:00:00Z", "2026-09-06T03:00:00Z"}},
		"put back":                 {"30 2 * * *", "Europe/Amsterdam", []string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"}, []string{"2026-10-25T02:30:00Z", "2026-10-24T23:30:00Z"}},
		"put back by half an hour": {"45 1 * * *", "Australia/Lord_Howe", []string{"2026-04-04T14:45:00Z", "2026-04-04T15:15:00Z"}, []string{"2026-04-04T15:45:00Z"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := cronPeriod(t, test.cron, test.zone)
			for _, s := range test.holds {
				if !p.Holds(moment(t, s)) {
					t.Errorf("%q in %q does not hold at %s", test.cron, test.zone, s)
				}
			}
			for _, s := range test.not {
				if p.Holds(moment(t, s)) {
					t.Errorf("%q in %q holds at %s", test.cron, test.zone, s)
				}
			}
		})
	}
}

func moment(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestWrongPeriods(t *testing.T) {
	tests := map[string]struct {
		cron, zone string
		count      int
		eviction   policy.Eviction
		want       string
	}{
		"no cron":             {"", "", 1, "", `cron: "" has 0 fields; write 5 (minute, hour, day of month, month, day of week), or 6 with seconds first`},
		"four fields":         {"* * * *", "", 1, "", `cron: "* * * *" has 4 fields; write 5 (minute, hour, day of month, month, day of week), or 6 with seconds first`},
		"a year":              {"* * * * * * 2026", "", 1, "", `cron: "* * * * * * 2026" has 7 fields; write 5 (minute, hour, day of month, month, day of week), or 6 with seconds first`},
		"a name":              {"@daily", "", 1, "", `cron: "@daily" has 1 fields; write 5 (minute, hour, day of month, month, day of week), or 6 with seconds first`},
		"a zone within":       {"TZ=UTC * * * * *", "", 1, "", `cron: "TZ=UTC * * * * *": "TZ=UTC" in "TZ=UTC" is neither a value, nor a range, nor a step`},
		"minute 60":           {"60 * * * *", "", 1, "", `cron: minute 60: must be 0 to 59`},
		"hour 24":             {"* 24 * * *", "", 1, "", `cron: hour 24: must be 0 to 23`},
		"day 0":               {"* * 0 * *", "", 1, "", `cron: day of month 0: must be 1 to 31`},
		"a negative minute":   {"-5 * * * *", "", 1, "", `cron: "-5 * * * *": "-5" in "-5" is neither a value, nor a range, nor a step`},
		"a negative step":     {"*/-5 * * * *", "", 1, "", `cron: "*/-5 * * * *": "*/-5" in "*/-5" is neither a value, nor a range, nor a step`},
		"step 0":              {"*/0 * * * *", "", 1, "", `cron: minute */0: a step must be at least 1`},
		"nothing in a list":   {"1,,2 * * * *", "", 1, "", `cron: "1,,2 * * * *": "" in "1,,2" is neither a value, nor a range, nor a step`},
		"a comma":             {"* * , * *", "", 1, "", `cron: "* * , * *": "" in "," is neither a value, nor a range, nor a step`},
		"a later wrong value": {"1,99 * * * *", "", 1, "", `cron: minute 99: must be 0 to 59`},
		"an unknown name":     {"* * * * FRY", "", 1, "", `cron: day of week FRY: must be 0 to 7, or SUN to SAT`},
		"an unknown letter":   {"* * * * 5L", "", 1, "", `cron: day of week 5L: must be 0 to 7, or SUN to SAT`},
		"second 75":           {"75 * * * * *", "", 1, "", `cron: second 75: must be 0 to 59`},
		"the last minute":     {"L * * * *", "", 1, "", `cron: minute L: must be 0 to 59`},
		"an unknown month":    {"* * * JAM *", "", 1, "", `cron: month JAM: must be 1 to 12, or JAN to DEC`},
		"the least before it": {"0 24 1 1 0", "", 1, "", `cron: hour 24: must be 0 to 23`},
		"the most before it":  {"59 23 31 12 8", "", 1, "", `cron: day of week 8: must be 0 to 7, or SUN to SAT`},
		"the end of a range":  {"* 9-25 * * *", "", 1, "", `cron: hour 25: must be 0 to 23`},
		"all of it": {"61 * * * *", "Mars/Base", -1, "fattest_first", `cron: minute 61: must be 0 to 59; ` +
			`time_zone: "Mars/Base" is no time zone; write a name of the IANA database, as Europe/Amsterdam; ` +
			`idle_count: -1 is negative; eviction_strategy: "fattest_first" is none of oldest_first, newest_first`},
		"30 February":          {"* * 30 2 *", "", 1, "", `cron: "* * 30 2 *" never holds: no such day comes`},
		"31 April and June":    {"* * 31 4,6 *", "", 1, "", `cron: "* * 31 4,6 *" never holds: no such day comes`},
		"an unknown zone":      {"* * * * *", "Europe/Amsterdm", 1, "", `time_zone: "Europe/Amsterdm" is no time zone; write a name of the IANA database, as Europe/Amsterdam`},
		"a directory of zones": {"* * * * *", "Europe", 1, "", `time_zone: "Europe" is no time zone; write a name of the IANA database, as Europe/Amsterdam`},
		"a path":               {"* * * * *", "../zoneinfo/UTC", 1, "", `time_zone: "../zoneinfo/UTC" is no time zone; write a name of the IANA database, as Europe/Amsterdam`},
		"the machine's zone":   {"* * * * *", "Local", 1, "", `time_zone: "Local" is no time zone; write a name of the IANA database, as Europe/Amsterdam`},
		"a negative count":     {"* * * * *", "", -1, "", `idle_count: -1 is negative`},
		"an unknown eviction":  {"* * * * *", "", 1, "fattest_first", `eviction_strategy: "fattest_first" is none of oldest_first, newest_first`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := policy.ParsePeriod(test.cron, test.zone, test.count, test.eviction)
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// The first that holds counts, whatever the others say.
func TestOverlappingPeriods(t *testing.T) {
	morning, day, always := cronPeriod(t, "* 8-11 * * *", ""), cronPeriod(t, "* 8-17 * * *", ""), cronPeriod(t, "* * * * *", "")
	tests := map[string]struct {
		periods []policy.Period
		hour    int
		want    string
	}{
		"all of them":      {[]policy.Period{morning, day, always}, 9, morning.Cron},
		"in another order": {[]policy.Period{day, morning, always}, 9, day.Cron},
		"two of them":      {[]policy.Period{morning, day, always}, 12, day.Cron},
		"the last":         {[]policy.Period{morning, day, always}, 20, always.Cron},
		"none":             {[]policy.Period{morning, day}, 20, ""},
		"none is given":    {nil, 9, ""},
		"one not parsed":   {[]policy.Period{{Cron: "* * * * *"}}, 9, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, ok := policy.Now(test.periods, time.Date(2026, 1, 1, test.hour, 0, 0, 0, time.UTC))
			if p.Cron != test.want || ok != (test.want != "") {
				t.Errorf("%q holds (%t), want %q", p.Cron, ok, test.want)
			}
		})
	}
}

func TestBriefPeriods(t *testing.T) {
	tests := map[string]time.Duration{
		"0 8 * * *": time.Minute, "*/15 * * * *": time.Minute, "0 0 1 * *": time.Minute, "0 8 29 2 *": time.Minute, "59 23 * * *": time.Minute,
		"* 0 8 * * *": time.Minute, "0 0 8 * * *": time.Second, "0 * 8-17 * * *": time.Second, "0 30 9 * * 1-5": time.Second, "0 0 * * FRI#5": time.Minute,
		"0-30 * 8 * * *": 31 * time.Second, "50-59,0-9 * * * * *": 20 * time.Second,
		"* * * * *": 0, "* 8 * * *": 0, "0,1 8 * * *": 0, "0,59 * * * *": 0, "0,59 0,23 * * *": 0,
		"* * 8-17 * * 1-5": 0, "5,20,21 * * * *": 0, "* * 29 2 *": 0,
	}
	for cron, want := range tests {
		if got := cronPeriod(t, cron, "").Brief(); got != want {
			t.Errorf("%s: %s, want %s", cron, got, want)
		}
	}
}

func TestPeriodsThatCoverOthers(t *testing.T) {
	const amsterdam = "Europe/Amsterdam"
	tests := []struct {
		before, zone, period, in string
		want                     bool
	}{
		{"* * * * *", "", "* 8 * * *", amsterdam, true},
		{"* 8-17 * * *", "", "* 9 * * 1-5", "", true},
		{"* 8-17 * * *", "", "0 9 1 * *", "", true},
		{"* 8-17 * * *", amsterdam, "* 9 * * 1-5", "", false},
		{"* 8-17 * * 1-5", "", "* 9 * * *", "", false},
		{"* 8-17 * * 1-5", "", "* 9 * * 2,4", "", true},
		{"* 8-17 * * 1-5", "", "* 9 1 * *", "", false},
		{"* 8-17 * * 1-5", "", "* 9 1 * 2", "", false},
		{"* 8-17 1-7 * 1-5", "", "* 9 1 * 2", "", true},
		{"* 8-17 1-7 * 1-5", "", "* 9 * * 2", "", true},
		{"* 8-17 1-7 * 1-5", "", "* 9 * * 6", "", false},
		{"* * L * *", "", "* 9 L * *", "", true},
		{"* * L * *", "", "* 9 31 * *", "", false},
		{"* * * * FRI#3", "", "* * * * FRI#2", "", false},
		{"* * * * FRI#3", "", "* * * * FRI#3", "", true},
		{"* * 1-7 * 1-5", "", "* * L * 1-5", "", false},
		{"* * L * 1-5", "", "* * L * 1-6", "", false},
		{"0 * * * * *", "", "* * * * *", "", false},
		{"* * 8 * * *", "", "* 8 * * *", "", true},
		{"*/10 * * * *", "", "*/20 * * * *", "", true},
		{"*/20 * * * *", "", "*/10 * * * *", "", false},
		{"* 8 * 6 *", "", "* 8 * * *", "", false},
	}
	for _, tt := range tests {
		if got := cronPeriod(t, tt.before, tt.zone).Covers(cronPeriod(t, tt.period, tt.in)); got != tt.want {
			t.Errorf("%s in %q before %s in %q: %t, want %t", tt.before, tt.zone, tt.period, tt.in, got, tt.want)
		}
	}
}
