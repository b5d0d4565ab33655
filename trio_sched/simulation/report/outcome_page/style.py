"""The style of the page: light, dark, and on paper."""

import math
from typing import Final

STEPS: Final = 20
"""The steps of the scale up to 100%, as the live page has them."""
_LIGHT: Final = ((0.95, 0.36), (0.025, 0.15), (225, 285), "#c2410c")
_DARK: Final = ((0.27, 0.9), (0.04, 0.12), (285, 190), "#ff9d5c")
"""Lightness, chroma and hue of the first and the last step, and the colour of what is beyond; see ``colours.js``."""
_DARK_INK_FROM: Final = 0.62
"""The lightness from which on dark letters can be read."""

_Scale = tuple[tuple[float, float], tuple[float, float], tuple[float, float], str]


def step_of(share: float) -> int:
    """The step of the scale for a *share* from 0 to 1; more than that is a step of its own."""
    return STEPS if share > 1 else min(int(share * STEPS), STEPS - 1)


def _scale(scale: _Scale, beyond_ink: str) -> str:
    """The colour of each step and of the letters on it, as variables; even in lightness as eyes see it."""
    lightness, chroma, hue, beyond = scale
    colours = []
    for step in range(STEPS):
        share = step / (STEPS - 1)
        light, hue_here = _between(lightness, share), _between(hue, share)
        strength = _between(chroma, math.sin(share * math.pi / 2))
        ink = "#10151b" if light > _DARK_INK_FROM else "#fff"
        colours.append((f"oklch({light:.3f} {strength:.3f} {hue_here:.0f})", ink))
    colours.append((beyond, beyond_ink))
    return "".join(f"--h{step}:{fill};--i{step}:{ink};" for step, (fill, ink) in enumerate(colours))


def _between(ends: tuple[float, float], share: float) -> float:
    return ends[0] + (ends[1] - ends[0]) * share


def style_of_choices(most: int) -> str:
    """Shows of each ``.choice`` the part that is chosen, of *most* at most."""
    return "".join(
        f".choice>input:nth-of-type({number}):checked~.map:nth-of-type({number}){{display:grid}}"
        for number in range(1, most + 1)
    )


STYLE: Final = (
    ":root{color-scheme:light dark;--page:#fff;--ink:#1b2430;--soft:#5b6775;--rule:#dde3ea;--card:#f6f8fa;"
    "--one:#2f6fb3;--two:#b8500f;--three:#7a8694;"
    + _scale(_LIGHT, "#fff")
    + "}@media (prefers-color-scheme:dark){:root{--page:#11161c;--ink:#e6ebf1;--soft:#9aa7b5;--rule:#2c3641;"
    "--card:#182029;--one:#6aaae6;--two:#f0975a;--three:#8996a5;"
    + _scale(_DARK, "#10151b")
    + "}}"
    + "".join(f".h{i}{{background:var(--h{i});color:var(--i{i})}}" for i in range(STEPS + 1))
    + """
*{box-sizing:border-box}
body{margin:0 auto;max-width:72rem;padding:2rem 1.5rem;background:var(--page);color:var(--ink);
 font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.6rem;margin:0}h2{font-size:1.15rem;margin:2.5rem 0 .6rem}h3{font-size:.95rem;margin:1.2rem 0 .3rem}
p{margin:.3rem 0;color:var(--soft)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;margin:.6rem 0;font-size:.88rem}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%;font-size:.88rem}
th{text-align:left;color:var(--soft);font-weight:600;border-bottom:1px solid var(--rule);padding:.3rem .8rem .3rem 0}
td{border-bottom:1px solid var(--rule);padding:.35rem .8rem .35rem 0;vertical-align:top;overflow-wrap:break-word}
.wide{overflow-x:auto}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(6.8rem,1fr));gap:.7rem;margin:1.4rem 0}
.tile{background:var(--card);border-radius:.5rem;padding:.7rem .9rem}
.tile b{display:block;white-space:nowrap;font-size:1.45rem;line-height:1.2;font-variant-numeric:tabular-nums}
.tile span{color:var(--soft);font-size:.82rem}
.choice>input{accent-color:var(--one);margin:0 .3rem 0 0}.choice>label{margin-right:1.2rem;font-size:.9rem}
.choice>input:checked+label{font-weight:600}.choice>.map{display:none;margin-top:.8rem}
.map{grid-template-columns:minmax(6rem,auto) 1fr;gap:.35rem .9rem;align-items:start;font-size:.85rem}
.map .name{color:var(--soft);overflow-wrap:anywhere}
.cells{display:grid;gap:2px;grid-template-columns:repeat(auto-fill,minmax(1.1rem,1fr))}.cells i{height:1.1rem}
.large{grid-template-columns:repeat(auto-fill,minmax(6.2rem,1fr))}
.large i{height:auto;padding:.15rem .35rem;font-style:normal;font-size:.75rem;line-height:1.3}
.large i b{display:block;font-weight:400;overflow:hidden;white-space:nowrap;text-overflow:ellipsis}
.small{grid-template-columns:repeat(auto-fill,minmax(.55rem,1fr));gap:1px}.small i{height:.55rem}
.scale{display:flex;flex-wrap:wrap;gap:1px;align-items:center}.scale i{width:9px;height:14px}
.scale{font-size:.8rem;color:var(--soft);margin:.4rem 0}.scale .beyond{margin-left:1rem}
.cells i,.scale i,.bar i,.tile,.key{-webkit-print-color-adjust:exact;print-color-adjust:exact}
.bar{display:block;height:5px;background:var(--rule);border-radius:3px;min-width:5rem;overflow:hidden}
.bar i{display:block;height:100%;background:var(--one)}.bar .over{background:var(--two)}
svg{display:block;width:100%;height:auto}
svg text{fill:var(--soft);font-size:11px}.axis{stroke:var(--rule);stroke-width:1}
.line{fill:none;stroke-width:2;stroke-linejoin:round}
.one{stroke:var(--one)}.two{stroke:var(--two)}.three{stroke:var(--three);stroke-dasharray:5 3}.tick{stroke:var(--two)}
.keys{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;font-size:.85rem;color:var(--soft)}
.key{display:inline-block;width:1.2rem;border-top:3px solid;margin-right:.4rem;vertical-align:middle}
.key.one{border-color:var(--one)}.key.two{border-color:var(--two)}.key.three{border-color:var(--three);border-top-style:dashed}
@media print{body{max-width:none;padding:0}h2{break-after:avoid}tr{break-inside:avoid}}
"""
)
