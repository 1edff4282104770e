"""Finds every place of the C++ sources that makes an Error, and renders its texts.

A site is a call of Error(...), input_error(...) or system_error(...), or of a function, lambda or method that passes its parameters on to
one ("factory"): then each call of the factory is rendered with its arguments. Literals are kept, other expressions become {name}; a
conditional expression is rendered in both branches.
"""
import itertools
import pathlib
import re

FOLDERS = ("cli", "kernels", "reports", "src", "transports")
SUFFIXES = (".h", ".cpp", ".cu", ".cuh")
MAKERS = ("Error", "input_error", "system_error")
KEYWORDS = {"if", "for", "while", "switch", "return", "throw", "catch", "sizeof", "decltype", "alignas", "static_assert", "noexcept",
            "explicit", "requires", "co_return", "else", "do", "new", "delete", "defined", "operator"}
# Calls that only change the form of what they are given.
TRANSPARENT = {"printable", "std::string", "std::string_view", "string", "std::move", "move", "std::to_string", "to_string", "quoted",
               "format_count", "text_of", "c_str", "str", "data", "*"}
# A function that is called from more places than this is no factory: it reads fields, say, and its parameter stays a {name}.
MAX_CHAINS = 40
# The folders in a layer are as far from each other as from those of another layer.
LAYER = re.compile(r"^src/(?:(?:model|instruments)/|runtime/(?=(?:bootstrap|cuda|memory|shmem)/))")
TOKEN = re.compile(r"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<raw>R"(?P<delimiter>[^()\\ ]*)\(.*?\)(?P=delimiter)")
  | (?P<string>(?:u8|L)?"(?:[^"\\\n]|\\.)*")
  | (?P<char>'(?:[^'\\\n]|\\.)+')
  | (?P<directive>^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)
  | (?P<number>\.?\d(?:'?[\w.]|[eEpP][+-])*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<punctuation>::|->|&&|\|\||<=|>=|==|!=|<<|\+\+|--|\+=|[^\s\w])
""", re.X | re.S | re.M)
OPEN, CLOSE = "([{", ")]}"


class Token(str):
    """The text of a token, with its kind and its line."""

    def __new__(cls, text, kind, line):
        token = super().__new__(cls, text)
        token.kind, token.line = kind, line
        return token


def tokens_of(text):
    tokens, line, at = [], 1, 0
    for match in TOKEN.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        if match.lastgroup in ("comment", "directive"):
            continue
        kind = "string" if match.group("raw") else match.lastgroup
        tokens.append(Token(match.group(), kind, line))
    return tokens


def literal(token):
    if token.startswith("R"):
        return token[token.index("(") + 1:token.rindex(")")]
    body = token[token.index('"') + 1:-1]
    return re.sub(r'\\(["\\nt])', lambda m: {"n": "\\n", "t": "\\t"}.get(m.group(1), m.group(1)), body)


def matches_of(tokens):
    """Index of each bracket -> index of its partner."""
    partner, stack = {}, []
    for i, token in enumerate(tokens):
        if token.kind == "punctuation" and token in OPEN:
            stack.append(i)
        elif token.kind == "punctuation" and token in CLOSE and stack:
            j = stack.pop()
            partner[i], partner[j] = j, i
    return partner


def split(tokens, separators):
    """Splits at top-level separators."""
    parts, depth, part = [], 0, []
    for token in tokens:
        if token.kind == "punctuation":
            depth += (token in OPEN) - (token in CLOSE)
        if depth == 0 and token.kind == "punctuation" and token in separators:
            parts.append(part)
            part = []
        else:
            part.append(token)
    return parts + [part]


class Function:
    """A function or lambda with a body: where it begins and ends, its name and its parameters."""

    def __init__(self, name, parameters, defaults, begin, end, head, is_lambda):
        self.is_lambda = is_lambda
        self.name, self.parameters, self.defaults, self.begin, self.end, self.head = name, parameters, defaults, begin, end, head


class Site:
    """`maker` is one of MAKERS, or Report: a code, a rank or an action, a text and a fix, of which an Error is made elsewhere."""

    def __init__(self, file, index, maker, arguments):
        self.file, self.index, self.maker, self.arguments = file, index, maker, arguments
        self.line = file.tokens[index].line

    def fields(self):
        """The argument numbers of subject, action, cause and fix."""
        return {"Error": (1, 2, 3, 4), "input_error": (0, None, 2, 3), "system_error": (0, 1, None, 3), "Report": (None, 1, 2, 3)}[self.maker]


class Source:
    def __init__(self, root, path):
        self.path = path.relative_to(root).as_posix()
        self.tokens = tokens_of(path.read_text())
        self.partner = matches_of(self.tokens)
        self.called = {}  # name -> indices of the brackets behind it
        for i, token in enumerate(self.tokens[:-1]):
            if token.kind == "name" and self.tokens[i + 1] in ("(", "{") and i + 1 in self.partner:
                self.called.setdefault(str(token), []).append(i + 1)
        self.functions = list(self._functions())
        self.sites = list(self._sites())

    def _parameters(self, begin, end):
        names, defaults = [], {}
        for part in split(self.tokens[begin:end], ","):
            declared, *default = split(part, "=")
            words = [t for t in declared if t.kind == "name"]
            if len(words) > 1 or (words and len(declared) > 1):
                text = any(w in ("string", "string_view", "char", "auto", "Error") for w in words)
                names.append(str(words[-1]) if text else "")  # numbers keep their name in the text
                if default:
                    defaults[names[-1]] = default[0]
            elif declared:
                names.append("")
        return names, defaults

    def _functions(self):
        t, partner = self.tokens, self.partner
        for i, token in enumerate(t):
            if token != "(" or token.kind != "punctuation" or i not in partner or i == 0:
                continue
            close = partner[i]
            j = close + 1
            while j < len(t) and (t[j] in ("const", "noexcept", "override", "final", "mutable", "&", "->", "::", "<", ">", "*")
                                  or t[j].kind == "name" and t[j - 1] in ("->", "::", "<", "const")):
                j += 1
            if j < len(t) and t[j] == ":" and t[i - 1].kind == "name":  # a constructor's members
                while j < len(t) and t[j] not in ("{", ";"):
                    j += 1
                    while j < len(t) and t[j] in ("(", "{") and t[j - 1].kind == "name":
                        j = partner.get(j, j) + 1
            if j >= len(t) or t[j] != "{" or j not in partner:
                continue
            before = t[i - 1]
            if before == "]":  # a lambda; auto name = [...](...) {
                k = partner[i - 1] - 1
                name = str(t[k - 1]) if k > 0 and t[k] == "=" and t[k - 1].kind == "name" else ""
                head = k
            elif before.kind == "name" and before not in KEYWORDS:
                name, head = str(before), i - 2
            else:
                continue
            names, defaults = self._parameters(i + 1, close)
            yield Function(name, names, defaults, j, partner[j], head, before == "]")

    def function_at(self, index):
        """The functions around a token, the innermost first."""
        around = [f for f in self.functions if f.begin < index < f.end]
        return sorted(around, key=lambda f: f.end - f.begin)

    def arguments_at(self, index):
        """The arguments of the call whose bracket is at index."""
        inner = self.tokens[index + 1:self.partner[index]]
        return [] if not inner else split(inner, ",")

    def _sites(self):
        t = self.tokens
        heads = {f.begin for f in self.functions}
        for i, token in enumerate(t[:-1]):
            if token.kind != "name" or token not in MAKERS:
                continue
            before = t[i - 1] if i else ""
            if before in ("~", "class", "struct", "explicit", "::", "&", "friend", ".", "->") and not (before == "::" and t[i - 2] == "shmemctl"):
                continue
            j = i + 1
            if token == "Error" and t[j].kind == "name" and t[j + 1] == "(":
                j += 1  # Error error(...): a variable, if it is not a function
            elif token == "Error" and t[j] == ">" and t[j + 1] == "(" and t[i - 1] == "<":
                j += 1  # make_unique<Error>(...)
            if t[j] != "(" or j not in self.partner:
                continue
            close = self.partner[j]
            if any(b in heads for b in (close + 1, close + 2, close + 3)) or t[close + 1] in ("const", "noexcept"):
                continue  # a function's head
            arguments = self.arguments_at(j)
            if token == "Error" and len(arguments) < 3 or self._declares(arguments):
                continue
            yield Site(self, i, str(token), arguments)
        for i, token in enumerate(t[:-3]):  # return {ExitCode::usage, ...}, emplace(ExitCode::usage, ...)
            if token in ("{", "(") and t[i + 1] == "ExitCode" and t[i + 2] == "::" and i in self.partner and t[i - 1] not in MAKERS:
                arguments = self.arguments_at(i)
                if len(arguments) >= 5 and not (t[i - 2] == "Error" and t[i - 1].kind == "name"):
                    yield Site(self, i, "Error", arguments)
                elif len(arguments) == 4:
                    yield Site(self, i, "Report", arguments)

    @staticmethod
    def _declares(arguments):
        """const std::string& name, ...: a declaration, not a call."""
        return any(len(a) >= 2 and a[-1].kind == "name" and (a[-2].kind == "name" or a[-2] in ("&", "*") and len(a) > 2 and a[0] == "const")
                   for a in arguments)


# ---------------------------------------------------------------------------------------------------- rendering

def short_name(tokens):
    """The name that a placeholder gets."""
    names = [t for t in tokens if t.kind == "name" and t not in ("std", "shmemctl", "static_cast", "const_cast", "int")]
    depth, best = 0, None
    for token in tokens:
        if token.kind == "punctuation":
            depth += (token in OPEN) - (token in CLOSE)
        elif token.kind == "name" and depth == 0 and token not in ("std", "shmemctl", "int"):
            best = token
    if best is None or best in TRANSPARENT or best in ("value", "text", "front", "back", "at", "static_cast", "value_or", "string"):
        rest = [n for n in names if n not in TRANSPARENT and n not in ("value", "value_or", "front", "back", "at")]
        best = rest[-1] if best is None and rest else rest[0] if rest else (names[-1] if names else "expr")
    return "{" + str(best).strip("_") + "}"


def render(tokens, bindings, depth=0):
    """All texts that a string expression can have, as a list."""
    tokens = list(tokens)
    while len(tokens) > 1 and tokens[0] in ("(", "{") and matches_of(tokens).get(0) == len(tokens) - 1:
        tokens = tokens[1:-1]
    if not tokens:
        return [""]
    parts = split(tokens, "?")
    if len(parts) > 1:
        rest = tokens[len(parts[0]) + 1:]
        nested, level = 0, 0
        for i, token in enumerate(rest):
            level += (token in OPEN) - (token in CLOSE) if token.kind == "punctuation" else 0
            if level == 0 and token == "?":
                nested += 1
            elif level == 0 and token == ":" and token.kind == "punctuation":
                if nested == 0:
                    return unique(render(rest[:i], bindings, depth) + render(rest[i + 1:], bindings, depth))
                nested -= 1
        return [short_name(tokens)]
    parts = split(tokens, "+")
    if len(parts) > 1 and any(len(part) == 1 and part[0].kind == "number" for part in parts):  # a sum of numbers, not of texts
        terms = [str(part[0]) if len(part) == 1 and part[0].kind == "number" else short_name(part).strip("{}") for part in parts]
        return ["{" + " + ".join(terms) + "}"]
    if len(parts) > 1:
        rendered = [render(part, bindings, depth) for part in parts]
        return unique("".join(choice) for choice in itertools.islice(itertools.product(*rendered), 64))
    if all(t.kind == "string" for t in tokens):
        return ["".join(literal(t) for t in tokens)]
    if any(t.kind == "string" for t in tokens) and all(t.kind == "string" or t.isupper() for t in tokens):  # "a " MACRO
        return ["".join(literal(t) if t.kind == "string" else "{" + t + "}" for t in tokens)]
    if len(tokens) == 1 and tokens[0].kind == "char":
        return [str(tokens[0])[1:-1].replace("\\", "")]
    if len(tokens) == 1 and tokens[0].kind == "number":
        return [str(tokens[0])]
    if len(tokens) == 1 and tokens[0] in bindings and depth < 12:
        bound, inner = bindings[tokens[0]]
        return render(bound, inner, depth + 1)
    # a call of something transparent, or fmt::format
    if tokens[-1] in (")", "}"):
        pairs = matches_of(tokens)
        start = pairs.get(len(tokens) - 1)
        if start:
            callee = "".join(tokens[:start])
            arguments = split(tokens[start + 1:-1], ",")
            if callee in ("fmt::format", "format") and arguments and arguments[0] and all(t.kind == "string" for t in arguments[0]):
                return fill("".join(literal(t) for t in arguments[0]), arguments[1:], bindings, depth)
            if callee in TRANSPARENT or re.fullmatch(r"std::string", callee):
                if arguments[0]:
                    return render(arguments[0], bindings, depth)
            joined = re.fullmatch(r"(.*)\.append", callee)
            if joined:
                left, right = render(tokens[:start - 2], bindings, depth), render(arguments[0], bindings, depth)
                return unique(a + b for a in left for b in right)
            if callee == "counted" and arguments:
                noun = render(arguments[1], bindings, depth)[0] if len(arguments) > 1 else "PE"
                return [render(arguments[0], bindings, depth)[0] + " " + noun + "s"]
    return [short_name(tokens)]


def fill(pattern, arguments, bindings, depth):
    choices = [render(a, bindings, depth) for a in arguments]
    texts = []
    for choice in itertools.islice(itertools.product(*choices), 64):
        items, out = iter(choice), re.split(r"(\{\{|\}\}|\{[^{}]*\})", pattern)
        text = ""
        for piece in out:
            if piece in ("{{", "}}"):
                text += piece[0]
            elif piece.startswith("{"):
                text += next(items, "{missing}")
            else:
                text += piece
        texts.append(text)
    return unique(texts)


def unique(items):
    return list(dict.fromkeys(items))


class Rendered:
    """One error as it is printed: subject, action ("" for bad input), cause and fix."""

    def __init__(self, file, line, maker, subject, action, cause, fix):
        self.file, self.line, self.maker = file, line, maker
        self.subject, self.action, self.cause, self.fix = subject, action, cause, fix

    def key(self):
        return (self.subject, self.action, self.cause, self.fix)

    def text(self):
        head = self.subject + (": " if self.subject else "")
        head += "cannot " + self.action if self.action else self.cause
        if self.action and self.cause:
            head += ": " + self.cause
        return head + ("\n    fix: " + self.fix if self.fix else "")


def texts_of(site, bindings):
    """Renders a site with what its function's parameters are bound to."""
    a = site.arguments
    def one(i):
        return render(a[i], bindings) if i < len(a) else [""]
    if site.maker == "Error":
        fields = [one(1), one(2), one(3), one(4)]
    elif site.maker == "input_error":
        position, problem = one(1), one(2)
        fields = [one(0), [""], [(p + ": " if p else "") + q for p in position for q in problem], one(3)]
    elif site.maker == "Report":
        action = any(t.kind == "string" for t in a[1]) or short_name(a[1]) == "{attempted}"
        fields = [["{subject}"], one(1) if action else ["{step}"], one(2), one(3)]
    else:
        fields = [one(0), one(1), ["{strerror}"], one(3)]
    # Every branch of each field, with the others' first: not their product, which nobody would read.
    seen = []
    width = max(len(f) for f in fields)
    for i in range(width):
        seen.append(tuple(f[i] if i < len(f) else f[-1] for f in fields))
    for choice in unique(seen):
        yield Rendered(site.file.path, site.line, site.maker, *choice)


class Tree:
    """All sources; renders every site, through factories too."""

    def __init__(self, root, folders=FOLDERS):
        self.sources, self.definitions = [], {}
        root = pathlib.Path(root)
        for folder in folders:
            for path in sorted((root / folder).rglob("*")):
                if path.suffix in SUFFIXES and path.as_posix() not in (f"{root}/src/base/error.h", f"{root}/src/base/error.cpp"):
                    self.sources.append(Source(root, path))
        for source in self.sources:
            for function in source.functions:
                if function.name:
                    self.definitions.setdefault(function.name, set()).add(source.path)

    @staticmethod
    def distance(a, b):
        """How far apart two files are: a call means the nearest function of its name."""
        if a == b:
            return 0
        if a.rsplit(".", 1)[0] == b.rsplit(".", 1)[0]:
            return 1
        left, right = (LAYER.sub("src/", path).split("/")[:-1] for path in (a, b))
        same = len([1 for x, y in zip(left, right) if x == y])
        return 2 + max(len(left), len(right)) - same

    def callers(self, source, function):
        """Lists of (source, index of the bracket) of the calls of a factory, the likeliest first: everywhere if its header declares it, in
        its file, else everywhere."""
        def inside(where):
            found = where.called.get(function.name)
            if not found:
                return []
            far = self.distance(where.path, source.path)
            if any(self.distance(where.path, other) < far for other in self.definitions.get(function.name, ())):
                return []
            heads = [(f.head, f.begin) for f in where.functions if f.name == function.name]
            return [(where, i) for i in found
                    if not any(h <= i < b for h, b in heads) and not Source._declares(where.arguments_at(i))]
        if not function.name:
            return [[]]
        own = inside(source)
        in_file = function.is_lambda or source.path.endswith(".cpp")
        header = source.path.removesuffix(".cpp") + ".h"
        if own and in_file and (function.is_lambda or not any(s.path == header and function.name in s.called for s in self.sources)):
            return [own]
        everywhere = own + [call for where in self.sources if where is not source for call in inside(where)]
        return [everywhere, own] if own and in_file else [everywhere]

    def bound(self, source, index, names, depth=0):
        """What the parameters among `names` are bound to at a token: one item for each chain of calls that gives a literal."""
        for function in source.function_at(index):
            used = [n for n in names if n in function.parameters]
            if not used or depth > 2:
                continue
            for number, calls in enumerate(alternatives := self.callers(source, function)):
                chains = []
                for where, call in calls:
                    arguments = where.arguments_at(call)
                    if len(arguments) > len(function.parameters):
                        continue  # another function of that name
                    here = {}
                    for n in used:
                        at = function.parameters.index(n)
                        if at < len(arguments):
                            here[n] = arguments[at]
                        elif n in function.defaults:
                            here[n] = function.defaults[n]
                    if len(here) < len(used) and number + 1 < len(alternatives):
                        continue  # another function of that name, with fewer parameters
                    inner_names = {t for a in here.values() for t in a if t.kind == "name"}
                    literals = any(t.kind == "string" for a in here.values() for t in a)
                    for outer in self.bound(where, call, inner_names, depth + 1):
                        if literals or outer["where"]:
                            chains.append({"bindings": {n: (a, outer["bindings"]) for n, a in here.items()},
                                           "where": outer["where"] or (where.path, where.tokens[call].line)})
                if chains and len(chains) <= MAX_CHAINS:
                    return chains
        return [{"bindings": {}, "where": None}]

    def rendered(self):
        for source in self.sources:
            for site in source.sites:
                names = {t for a in site.arguments for t in a if t.kind == "name"}
                for chain in self.bound(source, site.index, names):
                    for text in texts_of(site, chain["bindings"]):
                        if chain["where"]:
                            text.file, text.line = chain["where"]
                        yield text
