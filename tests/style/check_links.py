#!/usr/bin/env python3
"""Every relative link and anchor in the project's Markdown leads somewhere, and every page is linked.

Anchors are those that GitHub and GitLab make of headings. Links to other sites are not followed.
Usage: check_links.py [ROOT]; exit code 1 and a line for each broken link."""
import pathlib
import re
import subprocess
import sys
import unicodedata

LINK = re.compile(r"(?<!!)\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
IMAGE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^\s*(```|~~~)")
CODE = re.compile(r"(`+)(?:.+?)\1")


def prose(text):
    """(number, line) without fenced blocks; code spans are blanked, since nothing in them is a link."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, line


def anchor_of(heading):
    """"## The `moe` page: a, b" -> "the-moe-page-a-b"."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)  # a link shows its text
    heading = heading.replace("`", "").strip().lower()
    kept = [c for c in heading
            if c in " -_" or unicodedata.category(c)[0] in "LN" or unicodedata.category(c) == "Mn"]
    return "".join(kept).replace(" ", "-")


def anchors_of(path):
    found, seen = set(), {}
    for _, line in prose(path.read_text(encoding="utf-8")):
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if heading:
            anchor = anchor_of(heading[1])
            count = seen.get(anchor, 0)
            seen[anchor] = count + 1
            found.add(anchor if count == 0 else f"{anchor}-{count}")
        found.update(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", line))
    return found


def links_of(path):
    """(line, target) of each link and image."""
    for number, line in prose(path.read_text(encoding="utf-8")):
        plain = CODE.sub(lambda span: span[1] + "x" * (len(span[0]) - 2 * len(span[1])) + span[1], line)
        for pattern in (LINK, IMAGE):
            for link in pattern.finditer(plain):
                yield number, link[1]


def broken_links(root, pages):
    """One line for each link that leads nowhere; and for pages under docs/ that no page links to."""
    problems, linked, anchors = [], set(), {}
    for page in pages:
        for number, target in links_of(page):
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue
            file, _, anchor = target.partition("#")
            path = (page.parent / file).resolve() if file else page
            where = f"{page.relative_to(root)}:{number}: {target}"
            if not path.exists():
                problems.append(f"{where}: there is no such file")
                continue
            if path.is_dir() and not anchor:
                linked.add(path / "README.md")
                continue
            linked.add(path)
            if anchor and path.suffix == ".md":
                if path not in anchors:
                    anchors[path] = anchors_of(path)
                if anchor not in anchors[path]:
                    problems.append(f"{where}: {path.name} has no heading with that anchor")
    for page in pages:
        if (root / "docs") in page.parents and page not in linked:
            problems.append(f"{page.relative_to(root)}: no page links to it")
    return problems


def pages_of(root):
    """Every Markdown file that belongs to the project."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
                            capture_output=True, text=True, check=False).stdout.split()
    names = listed or [str(p.relative_to(root)) for p in pathlib.Path(root).rglob("*.md")
                       if not p.relative_to(root).parts[0].startswith(("build", "."))]
    return [root / name for name in names if (root / name).is_file()]


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    pages = pages_of(root)
    if len(pages) < 10:
        sys.exit(f"check_links: {root} has {len(pages)} pages: is it the project?")
    problems = broken_links(root, pages)
    print("\n".join(problems) or f"{len(pages)} pages, no broken link")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
