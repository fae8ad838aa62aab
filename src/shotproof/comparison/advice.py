"""Advice on what a card shows: by axis, and by the attribute or context that costs most."""

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
    "difficulty": "The accuracy depends on which {items} are in the support: choose typical ones (near the class "
    "mean), or use more shots.",
    "classes": "Similar classes are confused: use features that resolve fine differences (another encoder, or further "
    "training on similar classes), or more shots.",
    "changes": "Choose supports that vary in what is changed, or train with augmentations that change it; then profile "
    "again.",
    "queries": "The method assumes equally many queries per class: use one that classifies each query separately, or "
    "one made for unequal numbers, such as alpha-tim.",
}
_INCONCLUSIVE = "The data shows nothing that would need a change."
_NO_LOSS = "Nothing to do."

# Attributes of light and color, with the augmentation that changes them in training.
_AUGMENTATIONS = (
    (r"^mostly |border$|^gr[ae]y$|^vivid$", "vary hue and saturation in training, or turn some {items} gray"),
    (r"^dark$|^bright$|^low contrast$", "vary brightness and contrast in training"),
    (r"^blurry$", "blur and sharpen {items} in training"),
    (r"^plain$|^cluttered$", "crop to the object, or paste it on other backgrounds in training"),
    (r"^portrait$|^landscape$", "crop at random aspect ratios in training"),
)


def advice_on_axis(axis: str, conclusion: Conclusion, context: str, medium: str | None) -> str:
    """Advise on an axis, by whether accuracy is lost on it."""
    if conclusion == "0":
        return _INCONCLUSIVE
    advice = _ON_LOSS.get(axis, _NO_LOSS) if conclusion == "+" else _NO_LOSS
    return advice.format(context=context.replace("_", " "), items=nouns(medium))


def advice_on_cost(axis: str, attribute: str, medium: str | None) -> str:
    """Advise on an attribute or a context that costs accuracy.

    Example:
        >>> advice_on_cost("contexts", "snow", "image")
        "Add images that are not in 'snow' to the support of such classes."
    """
    items = nouns(medium)
    if axis == "contexts":
        return f"Add {items} that are not in '{attribute}' to the support of such classes."
    augmentations = (words for pattern, words in _AUGMENTATIONS if re.search(pattern, attribute))
    alternative = next((f", or {words.format(items=items)}" for words in augmentations), "")
    return f"Add {items} without '{attribute}' to the support of such classes{alternative}."
