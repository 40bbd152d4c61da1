// Package site checks the site of the documents, which make site builds: that its links lead somewhere, that its pages need no other server, and
// that their Markdown was read as GitHub reads it. How the site is made is in hooks.py and in mkdocs.yml.
package site
