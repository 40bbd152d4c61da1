"""Tests of hooks.py, which make site runs: Markdown is read as GitHub reads it."""

import importlib.util
import unittest
from pathlib import Path
from types import SimpleNamespace

import markdown

specification = importlib.util.spec_from_file_location("hooks", Path(__file__).with_name("hooks.py"))
hooks = importlib.util.module_from_spec(specification)
specification.loader.exec_module(hooks)

REPOSITORY = "https://github.com/acme/shop"


def shown(text, page="aws.md"):
    """Returns the HTML of a page of the site, without line ends."""
    config = SimpleNamespace(extra={"repository": REPOSITORY, "branch": "trunk"})
    hooks.on_page_markdown(text, SimpleNamespace(file=SimpleNamespace(src_uri=page), is_homepage=False), config, None)
    html = markdown.markdown(text, extensions=[hooks.github, "tables", "pymdownx.superfences"])
    return html.replace("\n", "")


class Hooks(unittest.TestCase):
    def test_lists(self):
        self.assertEqual(shown("- a\n  - b\n"), "<ul><li>a<ul><li>b</li></ul></li></ul>")
        self.assertEqual(shown("- a\n\n  b\n\n- c\n"), "<ul><li><p>a</p><p>b</p></li><li><p>c</p></li></ul>")
        self.assertRegex(shown("1. a\n\n   ```\n   b\n   ```\n\n2. c\n"), "^<ol><li><p>a</p><div.*b.*</div></li><li><p>c</p></li></ol>$")

    def test_code_in_tables(self):
        self.assertIn("<code>b|c</code>", shown("| a |\n|---|\n| `b\\|c` |\n"))
        self.assertIn("<code>b\\|c</code>", shown("`b\\|c`"))

    def test_links(self):
        for page, link, want in [
            ("aws.md", "cost.md#hot-hosts", "cost.md#hot-hosts"),
            ("aws.md", "#steps", "#steps"),
            ("aws.md", "iam/host.json", "iam/host.json"),
            ("aws.md", "../README.md#install", "index.md#install"),
            ("iam/README.md", "../../README.md", "../index.md"),
            ("iam/README.md", "../aws.md", "../aws.md"),
            ("index.md", "docs/iam/README.md", "iam/README.md"),
            ("index.md", "docs/images/page-now-3-desk.png", "images/page-now-3-desk.png"),
            ("index.md", "SECURITY.md", "report-a-vulnerability.md"),
            ("aws.md", "../SECURITY.md", "report-a-vulnerability.md"),
            ("aws.md", "../go.mod#L3", f"{REPOSITORY}/blob/trunk/go.mod#L3"),
            ("iam/README.md", "../../internal/site", f"{REPOSITORY}/tree/trunk/internal/site"),
            ("aws.md", "../nothing.md", "../nothing.md"),
            ("aws.md", "https://example.com/a.md", "https://example.com/a.md"),
            ("aws.md", "mailto:a@example.com", "mailto:a@example.com"),
        ]:
            with self.subTest(page=page, link=link):
                self.assertEqual(shown(f"[a]({link})", page), f'<p><a href="{want}">a</a></p>')
        self.assertIn('src="images/page-now-3-desk.png"', shown("![a](docs/images/page-now-3-desk.png)", "index.md"))
        self.assertEqual(shown("`[a](../go.mod)`"), "<p><code>[a](../go.mod)</code></p>")

    def test_anchors(self):
        for heading, want in [
            ("What a delivery is answered", "what-a-delivery-is-answered"),
            ("remuda_jobs_waiting", "remuda_jobs_waiting"),
            ("Cold, warm & hot: A/B", "cold-warm--hot-ab"),
            ("Été", "été"),
        ]:
            self.assertEqual(hooks.anchor(heading, "-"), want)


if __name__ == "__main__":
    unittest.main()
