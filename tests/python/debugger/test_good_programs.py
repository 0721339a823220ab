"""Programs on which Inductor is right: nothing may be proven of any.

Everyday runs ask about a few whose results rounding or a choice among equal elements changes; `PYRITE_PROOFS` asks about all of them.
"""

import os
from pathlib import Path

from gpu import bars, good

# Running maxima, pooling and places of maxima in half precision, and attention.
FEW = ("cummax", "max_pool2d", "argmax", "scaled_dot_product_attention")


def test_nothing_is_proven_of_programs_that_inductor_gets_right(tmp_path):
    place = bars.Place(tmp_path / "programs", Path(os.environ["PYRITE_BIN"]))
    wanted = FEW if not os.environ.get("PYRITE_PROOFS") else ("",)
    texts = {name: text for name, text in good.programs("cpu") if any(word in text for word in wanted)}
    if not os.environ.get("PYRITE_PROOFS"):
        texts = {name: text for name, text in texts.items() if name.endswith("bf16")}
    programs = [place.folder / place.write(f"{name}.py", text) for name, text in texts.items()]
    verdicts = bars.judged(place, programs, "torch:inductor", workers=os.cpu_count() or 1)
    assert len(verdicts) == len(programs)
    others = {name: verdict for name, (verdict, _) in verdicts.items() if verdict not in ("pass", "noise")}
    assert not others, others
