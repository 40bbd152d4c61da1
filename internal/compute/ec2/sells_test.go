package ec2_test

import (
	"encoding/xml"
	"net/http"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/compute/ec2"
)

// TestSells: types that EC2 does not sell are known before a launch, at the price of a call in an hour for names that the catalogue lacks.
func TestSells(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	o := w.options()
	o.Now = func() time.Time { return now }
	c := w.open(t, o)
	for _, test := range []struct {
		name        string
		cpu, memory int
		patterns    [][]string
		want        bool
		calls       int
	}{
		{"any type", 2, 4096, nil, true, 0},
		{"of the catalogue", 2, 4096, [][]string{{"c6i.*"}}, true, 0},
		{"of the catalogue, in both lists", 2, 4096, [][]string{{"c*"}, nil, {"*.large"}}, true, 0},
		{"no such family", 2, 4096, [][]string{{"zz9.*"}}, false, 1},
		{"no such family, again", 2, 4096, [][]string{{"zz9.*"}}, false, 0},
		{"a family that the catalogue lacks", 4, 8192, [][]string{{"c5d.*"}}, true, 1},
		{"no such size of it", 4, 8192, [][]string{{"c5d.9x*"}}, false, 1},
		{"too small for the class", 4, 8192, [][]string{{"c6i.large"}}, false, 1},
		{"not of the pool", 2, 4096, [][]string{{"c6i.*"}, {"m7g.*"}}, false, 1},
	} {
		before := w.calls("DescribeInstanceTypes")
		if got := c.Sells(ec2.Class{CPU: test.cpu, MemoryMiB: test.memory}, test.patterns...); got != test.want {
			t.Errorf("%s: got %t", test.name, got)
		}
		if n := w.calls("DescribeInstanceTypes") - before; n != test.calls {
			t.Errorf("%s: %d calls, want %d", test.name, n, test.calls)
		}
	}
	now = now.Add(time.Hour)
	w.proxy.Handle("ec2", "DescribeInstanceTypes", func(rw http.ResponseWriter, r *http.Request, _ func(*http.Request) *awstest.Answer) {
		awstest.Fail(rw, r, http.StatusForbidden, "UnauthorizedOperation", "You are not authorized to perform this operation.")
	})
	if !c.Sells(ec2.Class{CPU: 2, MemoryMiB: 4096}, []string{"zz9.*"}) {
		t.Error("what cannot be known counts as not sold")
	}
}

// A long list comes in pages, and the type may be in the last of them.
func TestSellsReadsEveryPage(t *testing.T) {
	w := newWorld(t)
	pages := 0
	w.proxy.Handle("ec2", "DescribeInstanceTypes", func(rw http.ResponseWriter, r *http.Request, _ func(*http.Request) *awstest.Answer) {
		form, err := awstest.Form(r)
		if err != nil {
			t.Error(err)
		}
		type item struct {
			InstanceType string `xml:"instanceType"`
			CPU          int    `xml:"vCpuInfo>defaultVCpus"`
			MemoryMiB    int    `xml:"memoryInfo>sizeInMiB"`
		}
		answer := struct {
			XMLName   xml.Name `xml:"DescribeInstanceTypesResponse"`
			Types     []item   `xml:"instanceTypeSet>item"`
			NextToken string   `xml:"nextToken,omitempty"`
		}{}
		if pages++; form.Get("NextToken") == "" {
			answer.Types, answer.NextToken = []item{{"zz9.nano", 1, 512}}, "more"
		} else {
			answer.Types = []item{{"zz9.xlarge", 4, 8192}}
		}
		rw.Header().Set("Content-Type", "text/xml")
		if err := xml.NewEncoder(rw).Encode(answer); err != nil {
			t.Error(err)
		}
	})
	if c := w.open(t, w.options()); !c.Sells(ec2.Class{CPU: 4, MemoryMiB: 8192}, []string{"zz9.*"}) || pages != 2 {
		t.Errorf("the type of the second page is not sold, after %d pages", pages)
	}
}
