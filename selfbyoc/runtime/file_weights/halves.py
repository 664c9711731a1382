"""Floats as float16 in a file, which code in it widens while the system loads it."""

from __future__ import annotations

import numpy as np

FEWEST = 1024  # elements; less is not worth a piece of its own

WIDENED = """static float widened(uint16_t half) {
  uint32_t sign = (half & 0x8000u) << 16, exponent = (half >> 10) & 31, rest = half & 1023, bits;
  float wide = (float)rest * 5.9604644775390625e-8f; /* 2^-24, of what is below float16's normal */
  if (exponent == 0)
    memcpy(&bits, &wide, 4);
  else
    bits = (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | rest << 13;
  bits |= sign;
  memcpy(&wide, &bits, 4);
  return wide;
}
"""

WIDEN = (
    """/* Where halves begin in the file, where floats do in memory, and how many there are. */
static const uint64_t pieces[][3] = {{{pieces}}};

"""
    + WIDENED.replace("{", "{{").replace("}", "}}")
    + """
__attribute__((constructor)) static void selfbyoc_widen(void) {{
  for (unsigned n = 0; n < sizeof(pieces) / sizeof(pieces[0]); ++n)
    for (uint64_t i = 0; i < pieces[n][2]; ++i) {{
      uint16_t half;
      memcpy(&half, selfbyoc_weights + pieces[n][0] + 2 * i, 2);
      float wide = widened(half);
      memcpy(selfbyoc_made + pieces[n][1] + 4 * i, &wide, 4);
    }}
}}
"""
)


def as_halves(values: np.ndarray) -> np.ndarray | None:
    """Floats as float16, where that says every one of them and it is worth it."""
    if values.dtype != np.float32 or values.size < FEWEST:
        return None
    with np.errstate(over="ignore"):
        half = values.astype("<f2")
    same = np.array_equal(half.astype("<f4").view("<u4"), values.view("<u4"))
    return half if same else None
