"""The live page in a real browser: clicks, keys, links, hostile names, lost connections, and how fast it is."""

import gzip
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

import pytest
import trio

from tests.live_page.browser.chromium import CHROMIUM, Page, chromium
from tests.live_page.browser.fake_scheduler import FakeScheduler
from tests.live_page.browser.synthetic_cluster import CAUSES, HOSTILE, SyntheticCluster

LARGEST_BYTES = 60_000
IS_SHOWN = (
    "document.getElementById('summary').children.length > 5 && !document.querySelector('#connection:not([hidden])')"
)
TEXT = "document.body.innerText"
FIRST_PICTURE = """performance.getEntriesByName("nodes drawn")[0].startTime
  - performance.getEntriesByType("navigation")[0].responseStart"""
"""How long after the response began, in milliseconds."""
FRAMES = """new Promise((resolve) => {
  const times = [];
  const next = (time) => {
    times.push(time);
    if (times.length <= 120) requestAnimationFrame(next);
    else resolve(times.slice(1).map((time, i) => time - times[i]));
  };
  requestAnimationFrame(next);
})"""
"""How long 120 frames took, in milliseconds."""
LAID_OUT = """(async () => {
  const { layOut } = await import(new URL("ui/node_layout.js", location.href));
  return [[1, 1, 1], [60, 3, 20], [500, 40, 1], [5000, 3, 100], [15000, 3, 3]].map(([count, zones, pools]) => {
    const rows = Array.from({ length: count }, (_, row) => row);
    const nodes = {
      length: count, name: rows.map(String), zone: rows.map((row) => row % zones),
      pool: rows.map((row) => Math.floor(row / zones) % pools),
    };
    const names = (prefix, length) => Array.from({ length }, (_, i) => prefix + i);
    const made = layOut({ nodes, zones: names("z", zones), pools: names("p", pools) }, 980, 650);
    const bottom = Math.max(...made.groups.map((group) => group.y + group.height));
    const right = Math.max(...made.groups.map((group) => group.x + group.perRow * made.cellWidth));
    const isAll = new Set(made.groups.flatMap((group) => group.rows)).size === count;
    return [isAll && bottom < 651 && right < 981, made.groups.length, made.cellWidth * made.cellHeight];
  });
})()"""
"""For numbers of nodes, zones and pools: whether all are within the room, how many groups, how large a cell is."""
PANEL = "document.querySelector('#panel[open]').innerText"

with_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is not on PATH: the page is not tried in a browser"
)


@asynccontextmanager
async def served(fake: FakeScheduler) -> AsyncGenerator[str]:
    """The address of the page of *fake*, which is served meanwhile."""
    async with trio.open_nursery() as nursery:
        server = fake.server()
        await nursery.start(server.serve)
        yield f"{server.url}{fake.prefix}/ui"
        nursery.cancel_scope.cancel()


def cell(name: str) -> str:
    """Where the cell of the node *name* is found by its label: the map tells it only to who points at it."""
    return f"""(() => {{
      const canvas = document.getElementById("base"), tip = document.getElementById("tip");
      const {{ left, top, width, height }} = canvas.getBoundingClientRect();
      for (let y = 20; y < height; y += 12) for (let x = 6; x < width; x += 12) {{
        canvas.dispatchEvent(new PointerEvent("pointermove", {{ clientX: left + x, clientY: top + y }}));
        if (!tip.hidden && tip.firstChild.textContent === "{name}") return [left + x, top + y];
      }}
    }})()"""


def test_the_files_are_small() -> None:
    static = files("trio_sched") / "live_page" / "static"
    sizes = {file.name: len(gzip.compress(file.read_bytes())) for file in static.iterdir()}
    assert {"page.html", "page.css", "app.js"} <= sizes.keys()
    assert sum(sizes.values()) < LARGEST_BYTES


@with_browser
async def test_the_page_shows_the_scheduler_and_answers_clicks_keys_and_links(tmp_path: Path) -> None:
    cluster = SyntheticCluster(60, 1200, 120)
    async with chromium(tmp_path) as page, served(FakeScheduler(cluster, prefix="/proxy/path")) as url:
        await page.size(1366, 768)
        await page.open(url)
        await page.until(IS_SHOWN)
        assert await page.evaluate("!document.querySelector('#shards:not([hidden]), #own:not([hidden])')")
        for text in ("1 not ready, 1 cordoned", "8.4 ms / 62 ms", "control-plane-1_8c1f", "last reload failed"):
            assert await page.until(f"{TEXT}.includes({text!r})")
        await _see_causes(page)
        await _open_a_pod(page)
        await _open_a_node(page)
        await _pinch(page)
        await _search(page)
        await _choose_colours_and_views(page)
        assert page.problems == []
        assert (
            await page.evaluate("document.querySelectorAll('img, [style*=expression], a[href^=javascript]').length")
            == 0
        )
        assert await page.evaluate("document.title.endsWith('prod-eu <img src=x o')")


async def _see_causes(page: Page) -> None:
    """The largest cause is first, all causes are on the screen, and a queue can be looked at alone."""
    texts = await page.until(
        "((found) => found.length > 4 && found)([...document.querySelectorAll('.group .text')]"
        ".filter((e) => e.getBoundingClientRect().bottom < innerHeight).map((e) => e.innerText))"
    )
    assert texts[0] == CAUSES[0][0]
    assert {text for text, _, _ in CAUSES} <= {*texts}
    gated = "document.querySelectorAll('#queues button')[3]"
    await page.click(gated)
    await page.until(
        "document.querySelectorAll('.group').length === 1"
        " && document.querySelector('.group').innerText.includes('Gated')"
    )
    await page.click(gated)
    await page.until("document.querySelectorAll('.group').length > 4")


async def _open_a_pod(page: Page) -> None:
    """A click on a pod explains it, markup stays text, a command is copied or selected, Escape closes."""
    await page.click("document.querySelector('.pod a')")
    await page.until(f"{PANEL}.includes('No node has 48Gi of memory left')")
    shown = await page.evaluate(PANEL)
    assert HOSTILE in shown
    assert "kubectl uncordon node-general-00007" in shown
    assert "12 of 60" in shown
    assert await page.evaluate("location.hash.startsWith('#pod=') && location.hash.includes('/worker-')")
    await page.click("document.querySelector('pre button')")
    await page.until("['Copied', 'Selected'].includes(document.querySelector('pre button').innerText)")
    await page.press("Escape")
    await page.until("!document.querySelector('#panel[open]') && location.hash === ''")


async def _open_a_node(page: Page) -> None:
    """Pointing at a cell tells its numbers, a click opens it; so do arrow keys and Enter; Back comes back."""
    x, y = await page.until(cell("node-general-00010"))
    await page.move(x, y)
    assert await page.until("document.querySelector('#tip:not([hidden])').innerText.includes('CPU')")
    await page.click_at(x, y)
    await page.until(f"{PANEL}.includes('shop/cart-0')")
    assert HOSTILE in await page.evaluate(PANEL)
    await page.evaluate("document.getElementById('base').focus()")
    await page.press("ArrowRight")
    await page.press("Enter")
    await page.until("location.hash === '#node=node-general-00011' && document.querySelector('#panel[open]')")
    await page.evaluate("history.back()")
    await page.until("document.querySelector('#panel[open] h2').innerText === 'node-general-00010'")
    await page.press("Escape")
    await page.until("!document.querySelector('#panel[open]')")


async def _pinch(page: Page) -> None:
    """Two fingers zoom in, what is between them stays there and a click opens it; together again, they show all."""
    is_zoomed = "document.getElementById('base').classList.contains('zoomed')"
    x, y = await page.until(cell("node-general-00010"))
    await page.pinch(x, y, 20, 80)
    await page.until(is_zoomed)
    await page.click_at(x, y)
    await page.until("location.hash === '#node=node-general-00010'")
    await page.press("Escape")
    await page.pinch(x, y, 80, 10)
    await page.until(f"!{is_zoomed}")
    assert await page.evaluate("location.hash") == ""


async def _search(page: Page) -> None:
    """Words find nodes here and pods at the scheduler; arrow keys choose, Enter opens."""
    await page.press("/")
    await page.type("gpu 00017")
    await page.until("document.querySelectorAll('#found a').length === 1")
    await page.evaluate("document.getElementById('query').select()")
    await page.type("img -50")
    await page.until(
        "document.querySelector('#found a') && document.querySelector('#found a').innerText.includes('<img src=x')"
    )
    await page.press("ArrowDown")
    await page.press("Enter")
    await page.until(f"{PANEL}.includes('No node has 48Gi')")
    assert await page.evaluate("document.getElementById('panel-title').textContent") == f"training/{HOSTILE}-50"
    await page.press("Escape")


async def _choose_colours_and_views(page: Page) -> None:
    """Keys and buttons choose what colours stand for and what is shown; the address says it."""
    await page.press("3")
    await page.until("document.querySelector('#measures [aria-pressed=true]').innerText === 'Memory'")
    assert await page.evaluate("location.hash") == "#colour=memory"
    await page.click("document.querySelector('[data-view=nodes]')")
    await page.until("document.querySelector('#nodes .node.bad a').innerText === 'node-general-00013'")
    await page.press("h")
    await page.until(
        "document.querySelectorAll('#history figure').length === 5"
        " && document.querySelectorAll('#history tbody tr').length === 7"
    )
    await page.until(
        "document.querySelector('#history canvas').getAttribute('aria-label').startsWith('Binds per second, now')"
    )
    assert await page.evaluate("location.hash") == "#colour=memory&view=history"
    await page.press("t")
    assert (
        await page.evaluate("document.documentElement.dataset.theme + localStorage.getItem('trio-sched-theme')")
        == "lightlight"
    )
    await page.press("?")
    await page.until("document.querySelector('#keys[open]').innerText.includes('colour the nodes')")
    await page.press("Escape")
    await page.until("!document.querySelector('#keys[open]')")


@with_browser
async def test_states_without_a_picture_are_said_in_words(tmp_path: Path) -> None:
    async with chromium(tmp_path) as page:
        await page.size(320, 640)
        fake = FakeScheduler(SyntheticCluster(0, 0, 0, has_trouble=False))
        async with served(fake) as url:
            await page.open(url)
            await page.until(f"{TEXT}.includes('There are no nodes') && {TEXT}.includes('No pod is pending')")
            assert await page.evaluate("document.documentElement.scrollWidth") == 320
            await fake.disconnect()
            await page.until(f"{TEXT}.includes('The connection is lost')")
            await page.until(f"!{TEXT}.includes('The connection is lost') && !document.body.classList.contains('lost')")
            fake.refused = 403
            await page.call("Page.reload")
            await page.until(f"{TEXT}.includes('You may not see this')")


@with_browser
async def test_a_replica_shows_its_shards_and_which_nodes_are_its_own(tmp_path: Path) -> None:
    cluster = SyntheticCluster(48, 100, 10, has_trouble=False, shards=40)
    foreign, own = (cluster.nodes["name"][cluster.nodes["shard"].index(shard)] for shard in (7, 8))
    async with chromium(tmp_path) as page, served(FakeScheduler(cluster)) as url:
        await page.size(320, 800)
        await page.open(url)
        for text in ("this replica only, one of 2.", "Being taken over: 1.", "12 more", "to others: 2 pods"):
            assert await page.until(f"document.querySelector('#shards:not([hidden])').innerText.includes({text!r})")
        assert await page.evaluate(f"{TEXT}.includes('0–2, 4, 6') && {TEXT}.includes(' pending here, ')")
        assert await page.evaluate(f"!{TEXT}.includes('Leader')")
        assert await page.evaluate("document.documentElement.scrollWidth") == 320
        pixels = "document.getElementById('base').toDataURL()"
        before = await page.evaluate(pixels)
        await page.click("document.querySelector('#own button')")
        await page.until(f"{pixels} !== {before!r} && document.querySelector('#own [aria-pressed=true]')")
        for name, shown in ((foreign, "Of shard 7, another replica."), (own, "Of shard 8, this replica.")):
            await page.evaluate(f"location.hash = 'node={name}'")
            await page.until(f"{PANEL}.includes('{shown}')")
        await page.evaluate("location.hash = 'view=nodes'")
        await page.until("document.getElementById('own').offsetWidth === 0")
        assert page.problems == []


@with_browser
async def test_a_recording_is_scrubbed(tmp_path: Path) -> None:
    cluster = SyntheticCluster(12, 100, 10, rate=20)
    begin = cluster.time
    fake = FakeScheduler(cluster, timeline={"begin": begin, "end": begin + 200})
    async with chromium(tmp_path) as page, served(fake) as url:
        await page.open(url)
        await page.until("document.querySelector('#timeline:not([hidden]) output').innerText.endsWith('0 s of 3 min')")
        await page.press(".")
        await page.until("document.querySelector('#timeline output').innerText.includes('1 s of')")
        await page.press(",")
        await page.until("document.querySelector('#timeline output').innerText.includes('0 s of')")
        await page.press(" ")
        await page.until("Number(document.querySelector('#timeline input').value) > %f" % (cluster.time + 1))
        await page.click("document.querySelectorAll('#timeline button')[1]")
        await page.until("document.querySelectorAll('#timeline button')[1].innerText === '▶'")
        for path, shown in {"node": "Pods of the node", "pod": "What it asks for"}.items():
            name = cluster.nodes["name"][0] if path == "node" else "shop/cart-0"
            await page.evaluate(f"location.hash = '{path}={name}'")
            await page.until(f"document.querySelector('#panel').innerText.includes('{shown}')")
            (query,) = [query for asked, query in fake.asked if asked == f"/ui/{path}"][:1]
            assert begin <= float(query["time"]) <= begin + 200
        assert page.problems == []


@with_browser
async def test_large_clusters_are_drawn_at_once_and_without_stutter(tmp_path: Path) -> None:
    fake = FakeScheduler(SyntheticCluster(5000, 50_000, 3000, rate=500))
    async with chromium(tmp_path) as page, served(fake) as url:
        await page.size(1366, 768)
        await page.open(url)
        first = await page.until(FIRST_PICTURE)
        busy = await _busy_seconds(page)
        frames = sorted(await page.evaluate(FRAMES))
        busy = 1000 * (await _busy_seconds(page) - busy) / len(frames)
        middle, slow = frames[len(frames) // 2], frames[len(frames) * 95 // 100]
        print(f"first picture {first:.0f} ms, work {busy:.1f} ms per frame, frames {middle:.1f} ms, p95 {slow:.1f} ms")
        # Goals are 1000 and 16 ms; the machine does other things, too, and draws without a graphics card.
        laid_out = await page.evaluate(LAID_OUT)
        assert [is_within for is_within, _, _ in laid_out] == [True] * 5
        assert [groups for _, groups, _ in laid_out] == [1, 60, 40, 3, 9]
        assert min(size for _, _, size in laid_out[:4]) > 80
        assert first < 5000
        assert busy < 50
        assert page.problems == []


async def _busy_seconds(page: Page) -> float:
    """How long the page's thread has worked: scripts, styles, layout, painting."""
    metrics = (await page.call("Performance.getMetrics"))["metrics"]
    return float(next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration"))
