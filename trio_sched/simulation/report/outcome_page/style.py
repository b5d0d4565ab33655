"""The style of the page: light, dark, and on paper."""

from typing import Final

STEPS: Final = 10
"""The steps of the scale up to 100%."""
_LIGHT: Final = (
    "#eef3fa",
    "#d9e6f5",
    "#c0d6ef",
    "#a3c4e8",
    "#84b0df",
    "#659bd4",
    "#4885c6",
    "#316eb2",
    "#205797",
    "#123f74",
)
_DARK: Final = (
    "#1c2733",
    "#20364c",
    "#234565",
    "#27557e",
    "#2d6697",
    "#3878ae",
    "#4c8cc2",
    "#68a2d3",
    "#8bbae2",
    "#b5d5f0",
)


def step_of(share: float) -> int:
    """The step of the scale for a *share* from 0 to 1; more than that is a step of its own."""
    return STEPS if share > 1 else min(int(share * STEPS), STEPS - 1)


def style_of_choices(most: int) -> str:
    """Shows of each ``.choice`` the part that is chosen, of *most* at most."""
    return "".join(
        f".choice>input:nth-of-type({number}):checked~.map:nth-of-type({number}){{display:grid}}"
        for number in range(1, most + 1)
    )


def _scale(colours: tuple[str, ...], over: str) -> str:
    return "".join(f"--h{i}:{colour};" for i, colour in enumerate((*colours, over)))


STYLE: Final = (
    ":root{color-scheme:light dark;--page:#fff;--ink:#1b2430;--soft:#5b6775;--rule:#dde3ea;--card:#f6f8fa;"
    "--one:#2f6fb3;--two:#b8500f;--three:#7a8694;"
    + _scale(_LIGHT, "#b3261e")
    + "}@media (prefers-color-scheme:dark){:root{--page:#11161c;--ink:#e6ebf1;--soft:#9aa7b5;--rule:#2c3641;"
    "--card:#182029;--one:#6aaae6;--two:#f0975a;--three:#8996a5;"
    + _scale(_DARK, "#ff7b72")
    + "}}"
    + "".join(f".h{i}{{background:var(--h{i})}}" for i in range(STEPS + 1))
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
.cells,.scale{display:flex;flex-wrap:wrap;gap:2px;align-items:center}
.cells i,.scale i{width:14px;height:14px;border-radius:2px}.small i{width:8px;height:8px}
.scale{font-size:.8rem;color:var(--soft);margin:.4rem 0}.scale .beyond{margin-left:1rem}
.cells i,.scale i,.bar i,.tile,.key{-webkit-print-color-adjust:exact;print-color-adjust:exact}
.bar{display:block;height:5px;background:var(--rule);border-radius:3px;min-width:5rem;overflow:hidden}
.bar i{display:block;height:100%;background:var(--one)}.bar .over{background:var(--h10)}
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
