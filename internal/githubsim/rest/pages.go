package rest

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// GitHub's bounds of a page.
const (
	defaultPage = 30
	maxPage     = 100
)

func PageOf(r *http.Request) (page, perPage int) {
	q := r.URL.Query()
	page, perPage = 1, defaultPage
	if n, err := strconv.Atoi(q.Get("page")); err == nil && n > 0 {
		page = n
	}
	if n, err := strconv.Atoi(q.Get("per_page")); err == nil && n > 0 {
		perPage = min(n, maxPage)
	}
	return page, perPage
}

// Paginate cuts one page out of total and makes the Link header of it.
func Paginate(r *http.Request, base string, total, page, perPage int) (from, to int, header http.Header) {
	last := max(1, (total+perPage-1)/perPage)
	link := func(n int, rel string) string {
		q := r.URL.Query()
		q.Set("page", strconv.Itoa(n))
		q.Set("per_page", strconv.Itoa(perPage))
		u := url.URL{Path: r.URL.Path, RawQuery: q.Encode()}
		return fmt.Sprintf("<%s%s>; rel=%q", base, u.String(), rel)
	}
	var links []string
	if page > 1 {
		links = append(links, link(min(page-1, last), "prev"))
	}
	if page < last {
		links = append(links, link(page+1, "next"), link(last, "last"))
	}
	if page > 1 {
		links = append(links, link(1, "first"))
	}
	header = http.Header{}
	if len(links) > 0 {
		header.Set("Link", strings.Join(links, ", "))
	}
	from = min((page-1)*perPage, total)
	return from, min(from+perPage, total), header
}
