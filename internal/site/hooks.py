"""Makes a site of pages that are written for GitHub, and have the same links, anchors, lists and tables on both.

The pages are those of docs and ROOT_PAGES. A link to another file of the repository leads to it on GitHub.
"""

import posixpath
import sys
from pathlib import Path
from urllib.parse import urlsplit

from markdown.blockprocessors import build_block_parser
from markdown.extensions import Extension
from markdown.treeprocessors import Treeprocessor
from markdown.util import AtomicString
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]

# The pages at the root of the repository, by their names on the site. SECURITY.md would be the same file as docs/security.md on macOS.
ROOT_PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "report-a-vulnerability.md",
}

# What the theme would have the browser fetch from another server.
SCRIPTS = {
    "assets/mermaid.js": "@mermaid-js/tiny/dist/mermaid.tiny.js",
    "assets/iframe-worker.js": "iframe-worker/shim/index.js",
}


def on_config(config):
    config.markdown_extensions.insert(0, github)
    config.mdx_configs["toc"]["slugify"] = anchor
    config.extra["polyfills"] = ["assets/iframe-worker.js"]  # the plugin offline knows it by its name, and takes none from a server
    return config


def on_files(files, config):
    modules = Path(sys.prefix).parent / "node_modules"  # of scripts/site-tools
    for name, uri in ROOT_PAGES.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / name)))
    for uri, module in SCRIPTS.items():
        files.append(File.generated(config, uri, abs_src_path=str(modules / module)))
    return files


def on_page_markdown(markdown, page, config, files):
    github.links.page, github.links.config = page.file.src_uri, config
    if page.is_homepage:
        page.meta["hide"] = ["navigation"]  # on a wide screen, where it would have the page alone
    return markdown


def anchor(heading, separator):
    """Returns the anchor that GitHub gives a heading: lower case, spaces as hyphens, no punctuation."""
    return "".join(separator if c == " " else c.lower() for c in heading.strip() if c.isalnum() or c in " -_")


class GitHub(Extension):
    """Reads lists and tables as GitHub does, and changes links."""

    def __init__(self):
        super().__init__()
        self.links = Links()

    def extendMarkdown(self, md):
        md.tab_length = 2  # what belongs to the item of a list is indented by two
        md.parser = build_block_parser(md)
        md.treeprocessors.register(CodeInTables(), "code_in_tables", 2)
        md.treeprocessors.register(self.links, "repository", 1)  # before MkDocs checks the links, at 0


class CodeInTables(Treeprocessor):
    """Shows `a\\|b` in a table as a|b: there a | must be escaped in code too."""

    def run(self, root):
        for cell in (*root.iter("td"), *root.iter("th")):
            for code in cell.iter("code"):
                code.text = AtomicString(code.text.replace("\\|", "|"))


class Links(Treeprocessor):
    """Changes the links between files of the repository into those between pages of the site."""

    page = config = None

    def run(self, root):
        for element in root.iter():
            for key in ("href", "src"):
                if url := element.get(key):
                    element.set(key, self.on_site(url))

    def on_site(self, url):
        parts = urlsplit(url)
        if parts.scheme or parts.netloc or not parts.path or parts.path.startswith("/"):
            return url
        path = posixpath.normpath(posixpath.join(posixpath.dirname(repository_path(self.page)), parts.path))
        if not (ROOT / path).exists():
            return url  # MkDocs says so
        return self.place(path) + (f"#{parts.fragment}" if parts.fragment else "")

    def place(self, path):
        """Returns where a file or directory of the repository is, as seen from the page."""
        if uri := ROOT_PAGES.get(path):
            return relative(uri, self.page)
        if path.startswith("docs/") and (ROOT / path).is_file():
            return relative(path.removeprefix("docs/"), self.page)
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"{self.config.extra['repository']}/{kind}/{self.config.extra['branch']}/{path}"


def repository_path(page):
    """Returns the path of a page from the root of the repository."""
    return next((name for name, uri in ROOT_PAGES.items() if uri == page), "docs/" + page)


def relative(uri, page):
    return posixpath.relpath(uri, posixpath.dirname(page) or ".")


github = GitHub()
