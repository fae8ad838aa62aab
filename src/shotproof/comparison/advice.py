"""What to do about what a card shows: by axis, and by the attribute or context that costs most."""

from __future__ import annotations

import re

from shotproof.core.nouns import nouns
from shotproof.stats.pairs import Conclusion

_ON_LOSS = {
    "attributes": "Choose supports that differ in the attributes below, or train with augmentations that change them; "
    "then profile again.",
    "contexts": "Choose supports from several {context}s per class, or train with the {context}s mixed between "
    "classes; then profile again.",
    "conditions": "Choose supports that meet both conditions; then profile again.",
    "difficulty": "Which {items} are in the support decides: choose typical ones (near the class mean) rather than "
    "any, or take more shots.",
    "classes": "Alike classes are confused: take features that tell fine differences (another encoder, later training "
    "on alike classes), or more shots.",
    "queries": "The method counts on equally many queries per class: take one that looks at each query alone, or one "
    "that is made for unequal numbers, such as alpha-tim.",
}
_NOT_TOLD = "Nothing is shown that would need a change."
_KEPT = "Nothing to do."

# Words of light and color, by what changes them in training.
_AUGMENTATIONS = (
    (r"^mostly |border$|^gr[ae]y$|^vivid$", "vary hue and saturation in training, or turn some {items} gray"),
    (r"^dark$|^bright$|^low contrast$", "vary brightness and contrast in training"),
    (r"^blurry$", "blur and sharpen {items} in training"),
    (r"^plain$|^cluttered$", "crop to the object, or paste it on other backgrounds in training"),
    (r"^portrait$|^landscape$", "crop at random aspect ratios in training"),
)


def advice_on_axis(axis: str, conclusion: Conclusion, context: str, medium: str | None) -> str:
    """What to do about an axis, by whether something is lost."""
    if conclusion == "0":
        return _NOT_TOLD
    told = _ON_LOSS.get(axis, _KEPT) if conclusion == "+" else _KEPT
    return told.format(context=context.replace("_", " "), items=nouns(medium))


def advice_on_cost(axis: str, attribute: str, medium: str | None) -> str:
    """What to do about an attribute or a context that costs most.

    Example:
        >>> advice_on_cost("contexts", "snow", "image")
        "Add images to the support of such classes that are not in 'snow'."
    """
    items = nouns(medium)
    if axis == "contexts":
        return f"Add {items} to the support of such classes that are not in '{attribute}'."
    known = (words for pattern, words in _AUGMENTATIONS if re.search(pattern, attribute))
    augment = next((f", or {words.format(items=items)}" for words in known), "")
    return f"Add {items} without '{attribute}' to the support of such classes{augment}."
