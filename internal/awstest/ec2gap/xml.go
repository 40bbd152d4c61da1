package ec2gap

import (
	"bytes"
	"encoding/xml"
	"net/http"
	"slices"

	"github.com/remuda-ci/remuda/internal/awstest"
)

// node is any element of an answer.
type node struct {
	XMLName xml.Name
	Text    string `xml:",chardata"`
	Nodes   []node `xml:",any"`
}

// element is one of ours.
func element(name string, nodes ...node) node {
	return node{XMLName: xml.Name{Local: name}, Nodes: nodes}
}

func text(name, value string) node { return node{XMLName: xml.Name{Local: name}, Text: value} }

// read is the tree of an answer, without namespaces, which the SDK ignores.
func read(answer *awstest.Answer) (node, error) {
	var root node
	if err := xml.Unmarshal(answer.Body, &root); err != nil {
		return node{}, err
	}
	root.strip()
	return root, nil
}

// strip drops namespaces, and the white space around elements.
func (n *node) strip() {
	n.XMLName.Space = ""
	if len(n.Nodes) > 0 {
		n.Text = ""
	}
	for i := range n.Nodes {
		n.Nodes[i].strip()
	}
}

func (n node) answer() *awstest.Answer {
	var body bytes.Buffer
	body.WriteString(xml.Header)
	if err := xml.NewEncoder(&body).Encode(n); err != nil {
		panic(err) // trees of strings can be encoded
	}
	return &awstest.Answer{Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/xml"}}, Body: body.Bytes()}
}

// at is the first element under a path; an empty one if there is none.
func (n node) at(path ...string) node {
	if len(path) == 0 {
		return n
	}
	if i := slices.IndexFunc(n.Nodes, func(c node) bool { return c.XMLName.Local == path[0] }); i >= 0 {
		return n.Nodes[i].at(path[1:]...)
	}
	return node{}
}

// change applies f to every element with the name, at any depth.
func (n *node) change(name string, f func(*node)) {
	if n.XMLName.Local == name {
		f(n)
	}
	for i := range n.Nodes {
		n.Nodes[i].change(name, f)
	}
}

// changed is an answer whose elements with the name were changed.
func changed(answer *awstest.Answer, name string, f func(*node)) *awstest.Answer {
	if answer.Status != http.StatusOK {
		return answer
	}
	root, err := read(answer)
	if err != nil {
		return answer
	}
	root.change(name, f)
	return root.answer()
}
