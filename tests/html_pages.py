"""Reading pages as a browser would, for tests of what is on them."""

from html.parser import HTMLParser


class Reader(HTMLParser):
    """What a browser would find: elements, attributes and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in ("meta", "!doctype", "input", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)

    @property
    def titles(self) -> list[str]:
        return [value for name, value in self.attributes if name == "title"]


ELEMENTS = {
    *("html", "head", "meta", "title", "style", "body", "main", "header", "footer", "nav", "section", "article", "div"),
    *("h1", "h2", "h3", "p", "span", "strong", "b", "br", "a", "ul", "ol", "li", "details", "summary"),
    *("input", "label"),
    *("table", "thead", "tbody", "tr", "th", "td"),
    *("figure", "figcaption"),
    *("svg", "line", "rect", "path", "circle", "text", "desc"),
}


def read(html: str) -> Reader:
    """Parse a page, and check that it has only the elements of our templates and loads nothing."""
    found = Reader(html)
    assert found.open == []
    assert set(found.tags) <= ELEMENTS
    names = {name for name, _ in found.attributes}
    assert not any(name.startswith("on") for name in names)
    assert not names & {"src", "srcset", "action"}
    anchors = {f"#{value}" for name, value in found.attributes if name == "id"}
    assert {value for name, value in found.attributes if name == "href"} <= anchors  # within the page only
    assert len(anchors) == sum(name == "id" for name, _ in found.attributes)
    return found
