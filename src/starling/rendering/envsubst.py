r"""The language of `${…}`: envsubst as Flux has it, so that a repository written for Flux means the same here.

`${V}` is V's value, `$$` a dollar sign; any other `$`, as in `$V` or `$(V)`, stays what it is. What may stand in the
braces, where a word is text, or one expression in place of it:

    ${#V}                    the value's length
    ${V:-word}               the value, or the word if it is empty or not set; all of :- := :? :+ = mean just this
    ${V:N} ${V:N:M}          from N on, M long; from the end if negative; whole if N or M is no number
    ${V^} ${V^^} ${V,} ${V,,}     first letter or all letters in upper or lower case
    ${V#glob} ${V##glob}     without the shortest or longest start that matches
    ${V%glob} ${V%%glob}     … without such an end
    ${V/text/word} ${V//text/word}     with the first or every such text replaced; no word: removed
    ${V/#text/word} ${V/%text/word}    … only at the start or the end; no word: nothing happens

What isn't obvious, and is so in Flux:

- A default may mix text and expressions; all of them are worked out even if the default isn't needed, so that one
  without a value is an error in strict mode. In it `$$` stays as it is, and so it does in globs and numbers.
- The text to replace is no glob and ends at a slash only, a brace is part of it. In it and in its replacement `\/` is
  a slash, `\\` a backslash, `$$` a dollar sign. Several slashes between the two count as one.
- Lengths and offsets count bytes of UTF-8.
- In a glob `*` and `?` match slashes, too; a glob that makes no sense matches nothing. For an end, glob and value are
  compared backwards, character by character: there `[` and `]` would have to be swapped.
- `${V-word}`, `${V+word}` and `${V?word}` are refused.

Other than in Flux: what would cut a character in half is refused or, in globs, done to the whole character; a NUL is
refused instead of ending the text; nesting and the result's size are bounded.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NoReturn

from starling.rendering.errors import SubstitutionError, VariableNotSet
from starling.rendering.operators import LONGEST, OPERATORS, refuse_bomb

__all__ = ["LONGEST", "NESTING", "expand", "mentioned"]

NESTING: Final = 40

_DEFAULTS: Final = frozenset({":-", ":=", ":?", ":+", "="})


@dataclass(frozen=True, slots=True)
class _Expression:
    variable: str
    operator: str = ""
    words: "tuple[_Template, ...]" = ()


_Template = tuple[str | _Expression, ...]


def expand(text: str, variables: Mapping[str, str], *, strict: bool = False) -> str:
    """The text with its expressions worked out; what isn't set is empty or, if strict, a VariableNotSet."""
    return _Evaluation(variables, strict).text(_Parser(text).template())


def mentioned(text: str) -> list[str]:
    """The names of variables in a text, each once, in order; SubstitutionError if it can't be read."""

    def names(template: _Template) -> Iterator[str]:
        for part in template:
            if isinstance(part, _Expression):
                yield part.variable
                for word in part.words:
                    yield from names(word)

    return list(dict.fromkeys(names(_Parser(text).template())))


_NAME: Final = re.compile(r"\w+")
_OPERATOR: Final = re.compile(r":[-=?+]|=|:|[,^]{1,2}|##?|%%?|/[/#%]?")
_TEXT: Final = re.compile(r"(?:[^$]+|\$\$|\$(?!\{))++")
_WORD: Final = re.compile(r"(?:[^}$]+|\$(?!\{))++")
_OFFSET: Final = re.compile(r"(?:[^:}$]+|\$(?!\{))++")
_REPLACED: Final = re.compile(r"(?:[^/$\\]+|\$\$|\$(?!\{)|\\[/\\]|\\)++")
_REPLACEMENT: Final = re.compile(r"(?:[^}$\\]+|\$\$|\$(?!\{)|\\[/\\]|\\)++")
_COLONS: Final = re.compile(r":+")
_SLASHES: Final = re.compile(r"/+")
_DOLLARS: Final = re.compile(r"\$(\$)")
_ESCAPES: Final = re.compile(r"\$(\$)|\\([/\\])")


class _Parser:
    """Reads a text from left to right; `at` is where it has got to, `variable` the last name read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        self.variable = ""
        if "\0" in text:
            self.at = text.index("\0")
            self._refuse("a NUL character is no text")

    def template(self) -> _Template:
        parts: list[str | _Expression] = []
        while self.at < len(self.text):
            if found := self._take(_TEXT):
                parts.append(_DOLLARS.sub(r"\1", found))
            else:
                parts.append(self._expression())
        return tuple(parts)

    def _take(self, pattern: re.Pattern[str]) -> str:
        """What matches here, and go on behind it; "" if nothing does."""
        if not (found := pattern.match(self.text, self.at)):
            return ""
        self.at = found.end()
        return found[0]

    def _sees(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def _expression(self) -> _Expression:
        self.at += 2
        self.depth += 1
        if self.depth > NESTING:
            self._refuse(f"expressions are nested more than {NESTING} deep")
        if self._sees("#"):
            self.at += 1
            found = _Expression(self._name(), "length")
        else:
            name = self._name()
            operator = self._take(_OPERATOR)
            found = _Expression(name, operator, tuple(self._words(operator)))
        if not self._sees("}"):
            said = f"the word in ${{{found.variable}{found.operator}…" if found.words else f"${{{found.variable}"
            self._refuse(f"{'no }' if found.words else 'neither } nor an operator'} follows {said}")
        self.at += 1
        self.depth -= 1
        return found

    def _name(self) -> str:
        self.variable = self._take(_NAME)
        if not self.variable or not all(each.isalpha() or each.isdecimal() or each == "_" for each in self.variable):
            self._refuse("no name of a variable follows ${")
        return self.variable

    def _words(self, operator: str) -> Iterator[_Template]:
        if operator in _DEFAULTS:
            while self.at < len(self.text) and not self._sees("}"):
                yield self._word(_WORD)
        elif operator == ":":
            if self.text[self.at : self.at + 1] > "\x7f":
                self._refuse(f"${{{self.variable}: is followed by no number")
            yield self._word(_OFFSET)
            if self._take(_COLONS):
                yield self._word(_WORD)
        elif operator.startswith(("#", "%")):
            yield self._word(_WORD)
        elif operator.startswith("/"):
            yield self._word(_REPLACED, _ESCAPES)
            if not self._take(_SLASHES):
                self._refuse(f"a second / is missing in ${{{self.variable}/…")
            if not self._sees("}"):
                yield self._word(_REPLACEMENT, _ESCAPES)

    def _word(self, pattern: re.Pattern[str], escapes: re.Pattern[str] | None = None) -> _Template:
        if self._sees("${"):
            return (self._expression(),)
        if not (found := self._take(pattern)):
            self._refuse(f"a word is missing after ${{{self.variable} and its operator")
        return (escapes.sub(lambda match: match[0][1], found) if escapes else found,)

    def _refuse(self, problem: str) -> NoReturn:
        line = self.text.count("\n", 0, self.at) + 1
        where = f"line {line}: " if "\n" in self.text else ""
        hint = "write $$ for a dollar sign that starts no expression"
        if self.variable and self.text[self.at : self.at + 1] in {"-", "+", "?"}:
            hint = f"a default is written ${{{self.variable}:-word}}; {hint}"
        raise SubstitutionError(f"{where}{problem}", hint=hint)


class _Evaluation:
    """Works out templates with one set of variables; `size` is how much it made so far, used or not."""

    def __init__(self, variables: Mapping[str, str], strict: bool) -> None:
        self.variables = variables
        self.strict = strict
        self.size = 0

    def text(self, template: _Template) -> str:
        parts = []
        for part in template:
            parts.append(part if isinstance(part, str) else self._value(part))
            self.size += len(parts[-1])
            refuse_bomb(self.size)
        return "".join(parts)

    def _value(self, expression: _Expression) -> str:
        words = [self.text(word) for word in expression.words]
        value = self.variables.get(expression.variable)
        if expression.operator in _DEFAULTS:
            return value or "".join(words)
        if value is None:
            if self.strict:
                raise VariableNotSet(expression.variable)
            value = ""
        if not (operation := OPERATORS.get(expression.operator)):
            return value
        try:
            return operation(value, words)
        except UnicodeDecodeError:
            problem = f"${{{expression.variable}:…}} cuts a character of the value in half"
            raise SubstitutionError(problem, hint="offset and length count bytes of UTF-8") from None
