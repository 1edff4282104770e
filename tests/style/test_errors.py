#!/usr/bin/env python3
"""Renders every error of the sources, checks its grammar, and compares all of them with tests/data/error_texts.txt.

The template is that of src/base/error.h: "SUBJECT: cannot ACTION: CAUSE" or "SUBJECT: PROBLEM", then "fix: ...".
SHMEMCTL_UPDATE_GOLDEN=1 writes the listing anew; read what `git diff` shows of it.
"""
import difflib
import os
import pathlib
import re
import sys
import unittest

import error_sites

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "data" / "error_texts.txt"

# Base forms with which an action begins.
ACTIONS = set("""accept access call clear flush add agree allocate allow assign begin bind bring choose close commit compare complete connect continue copy
create deliver determine draw drain duplicate enable end exchange execute exit export fill find finish fork free gather get grow hold
import insert initialize install join launch list listen load make map move open pack pair parse perform place poll post process put query reach
read receive record reduce register replace replay request reserve resolve run select send set share split start stop store summarize
summarise synchronize transfer translate unregister upload use verify wait write broadcast collect sync alltoall""".split())
# Base forms with which a fix begins; a command or a question may be there too.
FIXES = ACTIONS | set("""add allow avoid bring build call change check chmod choose communicate compile correct count delete dump end
enlarge exclude exit finalize free give increase install keep leave let link list look lower merge modprobe mount name omit pass place
put raise rebuild record reduce reload release remove repeat report reset retry run set shmemctl split start stop switch transfer try
unset unregister update upgrade use wait write""".split())
PREPOSITIONS = "about after as at before between by for from in into of off on through to with without".split()
# Words of this project's own that a reader cannot know, and articles where a name belongs.
PRIVATE = re.compile(r"\b(octowords?|bells?|meetings?|made-up|how-manieth|mates?|so many|seats?|mend|heard|offers?|told)\b", re.I)


def complaints(error):
    """What is wrong with one rendered error, as a list of texts."""
    wrong = []
    whole = error.text()
    if not error.subject:
        wrong.append("no subject")
    if re.match(r"(the|a|an) ", error.subject, re.I):
        wrong.append("the subject begins with an article")
    if error.subject.split(" ")[0] in ("read", "write", "open", "wait", "choose", "connect", "find", "cannot"):
        wrong.append("the subject begins with a verb")
    if error.action:
        words = error.action.split()
        if "not" in words or "cannot" in words:
            wrong.append("the action is negated")
        elif not words[0].startswith("{") and words[0].rstrip(".:") not in ACTIONS:
            wrong.append(f'the action begins with "{words[0]}", no known verb in its base form')
        if words[-1] in PREPOSITIONS:
            wrong.append(f'the action ends with the preposition "{words[-1]}"')
        if error.action.endswith((".", ":")):
            wrong.append("the action ends with punctuation")
    elif not error.cause:
        wrong.append("neither action nor problem")
    if error.cause.endswith(".") and not error.cause.endswith("..."):
        wrong.append("the cause ends with a period")
    if error.fix.endswith(".") and not error.fix.endswith("..."):
        wrong.append("the fix ends with a period")
    first = re.match(r"[\w{}-]+", error.fix)
    if error.fix and not error.fix.startswith(("did you mean ", "{")) and (not first or first.group() not in FIXES):
        wrong.append(f'the fix does not begin with a known verb or a command: "{error.fix[:30]}"')
    if "  " in whole.replace("\n    ", "\n"):
        wrong.append("two spaces in a row")
    option = OPTIONS.search(whole)
    # Configuration files name options without the prefix.
    if option and not error.cause.endswith(", in {origin_name}"):
        wrong.append(f"{option.group()} is no variable: name it with the prefix, SHMEMCTL_{option.group()}")
    private = PRIVATE.search(re.sub(r"\{[^}]*\}|`[^`]*`", "", whole))
    if private:
        wrong.append(f'the private word "{private.group()}"')
    if "{missing}" in whole or "{expr}" in whole:
        wrong.append("an argument that has no literal, name or function")
    return wrong


def option_names():
    """A pattern of the options of more than one word, which are without the prefix that their variables have."""
    table = (ROOT / "src" / "base" / "option_table.cpp").read_text()
    rows = re.findall(r'(?:^ {6}\{|\b(?:choice|integer|number|secret)\()\s*"([A-Z][A-Z0-9_]+)"', table, re.M)
    names = {name for name in rows if "_" in name}
    assert len(names) > 60, names
    return re.compile(r"(?<![A-Z_%])(" + "|".join(sorted(names, key=len, reverse=True)) + r")(?![A-Z_])")


OPTIONS = option_names()


def listing(errors):
    """One page: by file, each text once, in the order of the sources."""
    lines, file, seen = [], None, set()
    for error in errors:
        if error.file != file:
            file, seen = error.file, set()
            lines += ["", "## " + file]
        text = error.text()
        if text not in seen:
            seen.add(text)
            lines += text.split("\n")
    return "\n".join(lines).lstrip("\n") + "\n"


class Errors(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.tree = error_sites.Tree(ROOT)
        cls.errors = sorted(cls.tree.rendered(), key=lambda e: (e.file, e.line))

    def test_every_throw_of_an_error_is_a_site(self):
        """A throw of Error, input_error or system_error that the scanner overlooks would be unchecked."""
        thrown = known = 0
        for source in self.tree.sources:
            lines = {source.tokens[site.index].line for site in source.sites}
            tokens = source.tokens
            for i, token in enumerate(tokens[:-2]):
                if token == "throw" and tokens[i + 1] in error_sites.MAKERS and tokens[i + 2] == "(" and tokens[i + 3] != "*":
                    thrown += 1
                    known += tokens[i + 1].line in lines
                    self.assertIn(tokens[i + 1].line, lines, f"{source.path}:{token.line} was not recognised")
        self.assertEqual(thrown, known)
        self.assertGreater(thrown, 200)

    def test_the_template_is_kept(self):
        wrong = [f"{e.file}:{e.line}: {problem}\n    {e.text()}" for e in self.errors for problem in complaints(e)]
        self.assertEqual(len(wrong), 0, f"{len(wrong)} texts break the rules of src/base/error.h:\n" + "\n".join(dict.fromkeys(wrong)))

    def test_all_texts_are_those_of_the_listing(self):
        text = listing(self.errors)
        if os.environ.get("SHMEMCTL_UPDATE_GOLDEN"):
            GOLDEN.write_text(text)
        old = GOLDEN.read_text() if GOLDEN.exists() else ""
        difference = "".join(difflib.unified_diff(old.splitlines(True), text.splitlines(True), str(GOLDEN), "the sources", n=0))
        self.assertEqual(old, text, f"SHMEMCTL_UPDATE_GOLDEN=1 {pathlib.Path(__file__).name} writes it anew:\n" + difference)


class Rules(unittest.TestCase):
    """The checks find what they are there for."""

    def error(self, subject="a.xml", action="read", cause="no such file", fix="pass a readable file"):
        return error_sites.Rendered("x.cpp", 1, "Error", subject, action, cause, fix)

    def test_a_good_error_passes(self):
        self.assertEqual(complaints(self.error()), [])
        self.assertEqual(complaints(self.error(action="", cause="not a number")), [])
        self.assertEqual(complaints(self.error(fix="did you mean zipf?")), [])

    def test_each_rule_finds_its_mistake(self):
        for change in ({"subject": ""}, {"subject": "the file"}, {"subject": "read a.xml"}, {"action": "its sizes"}, {"action": "connect to"},
                       {"action": "not read"}, {"action": "read."}, {"action": "", "cause": ""}, {"cause": "no such file."},
                       {"cause": "no  such file"}, {"fix": "its cable"}, {"fix": "pass a file."}, {"cause": "2 octowords"}, {"fix": "omit PROXY_CPUS"},
                       {"cause": "{expr}"}):
            with self.subTest(change):
                self.assertEqual(len(complaints(self.error(**change))), 1)

    def sites(self, text, **more):
        """Renders the sites of one file of C++, and of others by name: y_h is y.h."""
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "src").mkdir()
            for name, content in {"x_cpp": text, **more}.items():
                (pathlib.Path(folder) / "src" / name.replace("_", ".")).write_text(content)
            return [e.text() for e in error_sites.Tree(folder, ("src",)).rendered()]

    def test_literals_names_and_both_branches_are_rendered(self):
        text = 'void f() { throw Error(ExitCode::usage, "PE " + std::to_string(pe_), "read", more ? "a" "b" : why(x), "wait"); }'
        self.assertEqual(self.sites(text), ["PE {pe}: cannot read: ab\n    fix: wait", "PE {pe}: cannot read: {why}\n    fix: wait"])

    def test_formats_are_filled(self):
        text = 'Error f() { return input_error(name, "", fmt::format("{} is {{{}}}", "x", n), "omit it"); }'
        self.assertEqual(self.sites(text), ["{name}: x is {{n}}\n    fix: omit it"])

    def test_factories_are_rendered_for_each_caller(self):
        text = """Error bad(const std::string& what, const std::string& fix) { return {ExitCode::usage, "bench", "", what, fix}; }
                  void f() { throw bad("no " + name, "omit it"); } // throw bad("a comment", "")
                  void g() { const auto refuse = [&](const char* why) { throw bad(why, "wait"); }; refuse("too many"); }"""
        self.assertEqual(self.sites(text), ["bench: no {name}\n    fix: omit it", "bench: too many\n    fix: wait"])

    def test_factories_of_a_header_are_rendered_for_callers_in_other_files(self):
        text = """void Gpu::require(int result, const std::string& action) { throw Error(ExitCode::usage, "GPU", action, why(result), "wait"); }
                  void Gpu::open() { require(1, "open"); }"""
        other = 'void f(const Gpu& gpu) { gpu.require(2, "map its memory"); }'
        opened, mapped = "GPU: cannot open: {why}\n    fix: wait", "GPU: cannot map its memory: {why}\n    fix: wait"
        self.assertEqual(self.sites(text, x_h="void require(int result, const std::string& action);", y_cpp=other), [opened, mapped])
        self.assertEqual(self.sites(text, y_cpp=other), [opened])

    def test_a_macro_beside_a_literal_is_named(self):
        text = 'void f() { throw Error(ExitCode::usage, "plugin", "use", "it does not export " ENTRY_NAME, "name another"); }'
        self.assertEqual(self.sites(text), ["plugin: cannot use: it does not export {ENTRY_NAME}\n    fix: name another"])

    def test_errors_that_a_header_declares_are_rendered_for_callers_in_other_files(self):
        text = """Error bad(const std::string& what) { return {ExitCode::usage, "moe", "", what, "omit it"}; }
                  void f() { throw bad("too few"); }"""
        caller = 'void g() { throw bad("too many"); }'
        here, there = "moe: too few\n    fix: omit it", "moe: too many\n    fix: omit it"
        self.assertEqual(self.sites(text, x_h="Error bad(const std::string& what);", y_cpp=caller), [here, there])
        self.assertEqual(self.sites(text, y_cpp=caller), [here])


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
    unittest.main()
