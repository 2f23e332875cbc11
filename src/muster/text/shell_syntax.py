"""Reads a text as a POSIX shell does, and tells how it takes the place of each placeholder. No shell is run."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from muster.text.command_template import tokenize_template

QuotingContext = Literal["bare", "double", "single", "number", "refused"]

PLACEHOLDER_CHAR = "\0"  # stands for a placeholder in the text that is read; no shell can be given one
_ASSIGN_FIRST = "put it into a variable first, `X={name}`, and write $X here"
_VARIABLE_BEFORE = re.compile(r"\$[A-Za-z_]\w*\Z", re.ASCII)
_REDIRECTION = re.compile(rf"{PLACEHOLDER_CHAR}*[0-9]*[<>]")
_CASE = re.compile(r"case[\s\0'\"$`\\]")
_END_MARK = re.compile(r"-?[ \t]*((?:'[^'\n]*'|\"[^\"\n]*\"|\\.|[^\s;&|<>()'\"\\])*)")
_OPEN = {"double": "a double quote", "command": "a `$(`", "number": "a `$((`", "brace": "a `${`"}


@dataclass(frozen=True, slots=True)
class ShellPlaceholder:
    """One placeholder, and how the shell reads the place where it stands."""

    name: str
    at: int  # in the template
    context: QuotingContext = "bare"
    why: str = ""  # refused: what stands against it
    hint: str = ""
    glued: bool = False  # behind `$X`: the value must not become a part of that name
    redirected: bool = False  # before `>`: a number would name a file descriptor
    before: str = ""  # in quotes: the text up to the opening one; placeholders in it are \0


@dataclass(slots=True)
class _ShellFrame:
    """Something that was opened and not closed yet."""

    kind: str  # text | paren | command | number | double | brace
    first: int = 0  # how many placeholders came before it
    start: int = 0
    depth: int = 0  # of parentheses in a number
    quoted: bool = False  # a brace inside of double quotes
    documents: list[tuple[str, bool, bool]] | None = None  # here-documents: end mark, tabs may stand before it, quoted


class ShellParser:
    """Reads a text once, as POSIX shells do, and gives every placeholder its context. No shell is run."""

    def __init__(self, text: str) -> None:
        self.spots: list[ShellPlaceholder] = []
        parts = []
        names = []
        for at, token, name in tokenize_template(text):
            if name is None and PLACEHOLDER_CHAR in token:
                raise ValueError("a shell can't be given a NUL byte")
            parts.append(token if name is None else PLACEHOLDER_CHAR)
            if name is not None:
                names.append((name, at))
        self.marked = "".join(parts)
        self._names = iter(names)
        self._stack = [_ShellFrame("text", documents=[])]
        self._lost: tuple[str, str] | None = None  # from here on nothing is known
        self._fresh = True  # a word may begin here
        self._at = 0
        while self._at < len(self.marked):
            self._step()
        open_ = next((frame for frame in self._stack if frame.kind in _OPEN), None)
        if open_ and not self._lost:
            self._refuse_since(open_, f"{_OPEN[open_.kind]} before it is never closed", "close it")

    # -- what is told

    def _spot(self, context: QuotingContext, before: str = "") -> None:
        name, at = next(self._names)
        if self._lost:
            self.spots.append(ShellPlaceholder(name, at, "refused", *self._lost))
            return
        text = self.marked
        if any(frame.kind == "brace" for frame in self._stack):
            self._refused(name, at, "it stands inside of ${ }")
            return
        glued = bool(_VARIABLE_BEFORE.search(text, max(0, self._at - 200), self._at))
        if context == "number" and glued:
            self._refused(name, at, "it follows the name of a variable")
            return
        if context == "bare" and name.endswith(".args"):
            glued = glued or text[self._at + 1 : self._at + 2] == "#"  # with no words it would begin a comment
        redirected = bool(_REDIRECTION.match(text, self._at + 1))
        self.spots.append(ShellPlaceholder(name, at, context, glued=glued, redirected=redirected, before=before))

    def _refused(self, name: str, at: int, why: str, hint: str = "") -> None:
        self.spots.append(
            ShellPlaceholder(name, at, "refused", why, hint or _ASSIGN_FIRST.replace("{name}", "{" + name + "}"))
        )

    def _refuse_since(self, frame: _ShellFrame, why: str, hint: str) -> None:
        self.spots[frame.first :] = [
            replace(spot, context="refused", why=why, hint=hint) for spot in self.spots[frame.first :]
        ]

    def _lose(self, why: str, hint: str) -> None:
        if not self._lost:
            self._lost = (why, hint)
            for frame in self._stack:
                if frame.kind == "number":  # perhaps it was none
                    self._refuse_since(frame, why, hint)

    def _refuse_span(self, end: int, why: str, hint: str = "") -> None:
        """All placeholders up to there."""
        for each in self.marked[self._at : end]:
            if each == PLACEHOLDER_CHAR:
                if self._lost:
                    self._spot("refused")
                else:
                    self._refused(*next(self._names), why, hint)
        self._at = end

    # -- how it is read

    def _step(self) -> None:
        kind = self._stack[-1].kind
        each = self.marked[self._at]
        if self._lost:
            if each == PLACEHOLDER_CHAR:
                self._spot("refused")
            self._at += 1
        elif kind == "double":
            self._in_double(each)
        elif kind == "brace":
            self._in_brace(each)
        elif kind == "number":
            self._in_number(each)
        else:
            self._in_commands(each)

    def _in_commands(self, each: str) -> None:
        if each == "#" and self._fresh:
            end = self.marked.find("\n", self._at)
            self._refuse_span(len(self.marked) if end < 0 else end, "it stands in a comment", "take it out there")
            return
        if self._takes_several(each):
            return
        if each == PLACEHOLDER_CHAR:
            self._spot("bare")
        elif each == "'":
            self._single()
        elif each == '"':
            self._push("double")
        elif self.marked.startswith("<<", self._at):
            self._here_document()
            return
        else:
            self._plain(each)
            return
        self._at += 1
        self._fresh = False

    def _takes_several(self, each: str) -> bool:
        """Reads what begins with a backslash, a backquote or a dollar sign; False: nothing of it does."""
        read = {"\\": self._backslash, "`": self._backquotes, "$": self._dollar}.get(each)
        if read:
            read()
        return read is not None

    def _plain(self, each: str) -> None:
        if each == "(":
            if self.marked.startswith("((", self._at):
                self._lose("`((` before it means something else to each shell", "write `( (`, or $(( ))")
            self._push("paren")
        elif each == ")":
            self._close()
        elif each == "\n":
            self._at += 1
            self._fresh = True
            self._documents()
            return
        elif self._fresh and any(frame.kind == "command" for frame in self._stack) and self._is_case():
            self._lose("`case` inside of $( ) stands before it", "put the commands into a script")
        if each not in "()":
            self._fresh = each in " \t;&|<>"
        self._at += 1

    def _is_case(self) -> bool:
        return _CASE.match(self.marked, self._at) is not None

    def _close(self) -> None:
        frame = self._stack[-1]
        self._fresh = True
        if frame.kind == "command":
            if frame.documents:
                self._lose("a here-document inside of $( ) has no text", "begin it on a line of its own")
            self._fresh = False
        if len(self._stack) > 1:
            self._stack.pop()

    def _in_double(self, each: str) -> None:
        if self._takes_several(each):
            return
        if each == PLACEHOLDER_CHAR:
            self._spot("double", self.marked[: self._stack[-1].start])
        elif each == '"':
            self._stack.pop()
        self._at += 1
        self._fresh = False

    def _in_brace(self, each: str) -> None:
        if self._takes_several(each):
            return
        frame = self._stack[-1]
        if each == PLACEHOLDER_CHAR:
            self._spot("bare")
        elif each == "}":
            self._stack.pop()
            self._fresh = False
        elif each in "'\"" and frame.quoted:
            self._lose('quotes inside of "${ }" stand before it: shells disagree on them', "take them out")
        elif each == "'":
            self._single()
        elif each == '"':
            self._push("double")
        self._at += 1

    def _in_number(self, each: str) -> None:
        frame = self._stack[-1]
        if each == PLACEHOLDER_CHAR:
            self._spot("number")
        elif each == "(":
            frame.depth += 1
        elif each == ")" and frame.depth:
            frame.depth -= 1
        elif each == ")":
            if self.marked.startswith("))", self._at):
                self._stack.pop()
                self._at += 1
                self._fresh = False
            else:
                self._lose("`$((` is not closed by `))`", "write `$( (` where commands are meant")
        elif each in "'\"`\\":
            self._lose("quotes stand in $(( ))", "take them out")
        elif each == "#" and not self.marked[self._at - 1].isalnum():  # of `16#ff` it is; bash begins a comment here
            self._lose("a `#` stands in $(( ))", "take it out")
        elif each == "$":
            self._dollar()
            return
        self._at += 1

    def _backslash(self) -> None:
        following = self.marked[self._at + 1 : self._at + 2]
        if following == PLACEHOLDER_CHAR:
            self._refused(*next(self._names), "a backslash stands before it", "take the backslash out")
        if following != "\n":
            self._fresh = False
        self._at += 2

    def _single(self) -> None:
        """From one quote to the other; `_at` is left on the last."""
        start = self._at
        end = self.marked.find("'", start + 1)
        if end < 0:
            self._lose("a single quote before it is never closed", "close it")
            return
        for self._at in range(start + 1, end):
            if self.marked[self._at] == PLACEHOLDER_CHAR:
                self._spot("single", self.marked[:start])
        self._at = end

    def _dollar(self) -> None:
        rest = self.marked[self._at + 1 : self._at + 3]
        self._fresh = False
        if rest == "((":
            self._at += 3
            self._push("number")
        elif rest[:1] == "(":
            self._at += 2
            self._push("command")
        elif rest[:1] == "{":
            self._at += 2
            self._push("brace", quoted=self._stack[-1].kind == "double" or self._stack[-1].quoted)
        elif rest[:1] == "[":
            self._lose("`$[` before it means something else to each shell", "write $(( ))")
            self._at += 2
        elif rest[:1] == "'" and self._stack[-1].kind not in ("double", "number") and not self._stack[-1].quoted:
            self._dollar_quote()
        elif rest[:1] == PLACEHOLDER_CHAR:
            self._at += 1
            self._refused(*next(self._names), "a dollar sign stands before it")
            self._at += 1
        else:
            self._at += 1

    def _dollar_quote(self) -> None:
        self._at += 2
        end = self.marked.find("'", self._at)
        if end < 0 or "\\" in self.marked[self._at : end]:
            self._lose("$'...' with a backslash: shells disagree on where it ends", "use plain quotes")
            return
        self._refuse_span(end, "shells disagree on what $'...' is")
        self._at += 1

    def _backquotes(self) -> None:
        self._at += 1
        end = self._at
        while end < len(self.marked) and self.marked[end] != "`":
            end += 2 if self.marked[end] == "\\" else 1
        inside = self.marked[self._at : end]
        odd = any(inside.count(quote) % 2 for quote in "'\"")
        self._refuse_span(min(end, len(self.marked)), "it stands in backquotes", "write $(...) instead of `...`")
        if odd or end >= len(self.marked):
            self._lose("backquotes before it don't end where they seem to", "write $(...) instead of `...`")
        self._at += 1
        self._fresh = False

    def _push(self, kind: str, *, quoted: bool = False) -> None:
        documents: list[tuple[str, bool, bool]] | None = [] if kind == "command" else None
        self._stack.append(_ShellFrame(kind, len(self.spots), self._at, quoted=quoted, documents=documents))
        self._fresh = kind in ("paren", "command")

    # -- here-documents

    def _here_document(self) -> None:
        self._at += 2
        self._fresh = True
        if self.marked.startswith("<", self._at):  # `<<<`, of some shells: a word follows
            self._at += 1
            return
        tabs = self.marked.startswith("-", self._at)
        match = _END_MARK.match(self.marked, self._at)
        word = match.group(1) if match else ""
        if (
            not match
            or not word
            or any(each in word for each in f"{PLACEHOLDER_CHAR}$`")
            or ("'" in word and '"' in word)
        ):
            self._lose("a here-document before it ends nobody knows where", "give it a plain word as its end")
            return
        pending = next(frame.documents for frame in reversed(self._stack) if frame.documents is not None)
        end = re.sub(r"['\"]|\\(.)", r"\1", word)
        pending.append((end, tabs, end != word))
        self._at = match.end()
        self._fresh = False

    def _documents(self) -> None:
        """The texts of the here-documents that the line before has opened."""
        frame = next(frame for frame in reversed(self._stack) if frame.documents is not None)
        pending, frame.documents = frame.documents or [], []
        for end, tabs, quoted in pending:
            while True:
                if self._at >= len(self.marked):
                    self._lose("a here-document before it is never ended", f"end it with a line {end}")
                    return
                stop = self.marked.find("\n", self._at)
                stop = len(self.marked) if stop < 0 else stop
                line = self.marked[self._at : stop]
                if not quoted and _line_continues(line):
                    self._lose("a here-document before it can't be told from what follows", "use `<<'END'`")
                self._refuse_span(stop, "it stands in a here-document")
                self._at = min(stop + 1, len(self.marked))
                if (line.lstrip("\t") if tabs else line) == end:
                    break


def _line_continues(line: str) -> bool:
    """Whether something is open at the end of a line, so that the next one may be no line of its own."""
    backslashes = len(line) - len(line.rstrip("\\"))
    opened = ("$(" in line and line.count("(") != line.count(")")) or (
        "${" in line and line.count("{") != line.count("}")
    )
    return backslashes % 2 == 1 or opened or line.count("`") % 2 == 1
