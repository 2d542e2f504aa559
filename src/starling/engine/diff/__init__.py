"""What an apply would change in a cluster, field by field, for people and as JSON.

The nouns:

    ObjectDiff   what would become of one object: its Effect, and the Changes
    Change       one field: its path for people, its JSON pointer, its value before and after
    Apply        how the apply would go about it
    Effect       Unchanged, Created, Changed, Removed, Replaced, Refused

How data goes through: `diff_object` gets the live object and has the API server apply the manifest as a dry run, so
that defaults, admission and the fields of others are as they will be; a second dry run shows what an apply does
`further`, when it takes over what another tool made. `compare` (pure) takes the two objects, leaves
out the server's book-keeping and what is ignored, pairs the items of lists by their keys, and gives the ObjectDiff.
`diff_added` and `diff_removed` are for objects that aren't there yet or won't be. `render` prints diffs, `document`
is one as JSON.

A Secret's values never leave: `compare` puts tokens in their place before it looks at anything, and what it gives has
`***` there. `masked` does the same to an object that someone wants to print.

Uses `starling.kube`, `starling.objects` and `engine.paths`; nothing else of the engine.
"""

from starling.engine.diff.comparing import compare
from starling.engine.diff.dry_run import Apply, diff_added, diff_object, diff_removed, is_immutability, refused_anew
from starling.engine.diff.masking import MASK, MASK_CHANGED, masked, quotes_secret
from starling.engine.diff.printing import document, render
from starling.engine.diff.values import Change, Effect, ObjectDiff

__all__ = [
    "MASK",
    "MASK_CHANGED",
    "Apply",
    "Change",
    "Effect",
    "ObjectDiff",
    "compare",
    "diff_added",
    "diff_object",
    "diff_removed",
    "document",
    "is_immutability",
    "masked",
    "quotes_secret",
    "refused_anew",
    "render",
]
