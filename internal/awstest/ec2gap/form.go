package ec2gap

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/remuda-ci/remuda/internal/awstest"
)

// forward asks moto.
type forward = func(*http.Request) *awstest.Answer

// formOf is the form of a request, which is answered if it has none.
func formOf(w http.ResponseWriter, r *http.Request) (url.Values, bool) {
	form, err := awstest.Form(r)
	if err != nil {
		awstest.Fail(w, r, http.StatusBadRequest, "MalformedQueryString", err.Error())
	}
	return form, err == nil
}

// under are the values whose names begin with a prefix, without it.
func under(form url.Values, prefix string) url.Values {
	part := url.Values{}
	for key, values := range form {
		if rest, ok := strings.CutPrefix(key, prefix+"."); ok {
			part[rest] = values
		}
	}
	return part
}

// each are the parts of a list, which counts from 1.
func each(form url.Values, name string) []url.Values {
	var list []url.Values
	for i := 1; ; i++ {
		part := under(form, fmt.Sprintf("%s.%d", name, i))
		if len(part) == 0 {
			return list
		}
		list = append(list, part)
	}
}

// words are a list of strings.
func words(form url.Values, name string) []string {
	var list []string
	for i := 1; ; i++ {
		word := form.Get(fmt.Sprintf("%s.%d", name, i))
		if word == "" {
			return list
		}
		list = append(list, word)
	}
}

func number(form url.Values, name string, absent int) int {
	n, err := strconv.Atoi(form.Get(name))
	if err != nil {
		return absent
	}
	return n
}

// ask makes another call for the same caller.
func ask(r *http.Request, forward forward, action string, with url.Values) *awstest.Answer {
	form := url.Values{"Action": {action}, "Version": {"2016-11-15"}}
	maps.Copy(form, with)
	return forward(awstest.WithForm(r, form))
}

// askTree reads the answer too; an error of moto's is one of the code.
func askTree(r *http.Request, forward forward, action string, with url.Values) (node, *ec2Error) {
	answer := ask(r, forward, action, with)
	root, err := read(answer)
	switch {
	case err != nil:
		return node{}, &ec2Error{"InternalError", err.Error()}
	case answer.Status != http.StatusOK:
		e := root.at("Errors", "Error")
		return node{}, &ec2Error{e.at("Code").Text, e.at("Message").Text}
	}
	return root, nil
}

type ec2Error struct{ code, message string }
