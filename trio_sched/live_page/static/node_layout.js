// Where the cells of nodes are: zones side by side and one below the other, the pools of a zone within it, so that the
// cells are as large as the room allows. Where labels of many zones or pools would take the room, there are fewer.

const LABEL = 17;
const GAP = 10;
const LEAST = 2;
const LEAST_ZONE = 130; // pixels, for its label
const STRETCH = 1.5;
const WORTH_OF_DETAIL = 0.25; // how small cells may be, compared with those without labels
const SHAPES = [
  // Wide cells have room for a name; those that would be low are rather squares.
  { aspect: 2.5, least: 26, most: 88 },
  { aspect: 1.9, least: 26, most: 88 },
  { aspect: 1.5, least: 34, most: 88 },
  { aspect: 1, least: LEAST, most: 48 },
];

/**
 * Places the rows of *cluster* into *width* times *height* pixels.
 *
 * Returns `cellWidth`, `cellHeight`, `height` of everything (more than asked for, if cells would be too small to be
 * seen), and `groups`: `{label, x, y, width, height, perRow, rows}`, where `x` and `y` are those of the first cell.
 */
export function layOut(cluster, width, height) {
  if (!cluster.nodes.length) return { cellWidth: 0, cellHeight: 0, height: 0, groups: [] };
  const found = arrangementsOf(cluster).map((zones) => ({ zones, ...bestOf(zones, width, height) }));
  const most = Math.max(...found.map(areaOf));
  // The last one has no details, and so the largest cells.
  const chosen = found.find((one) => areaOf(one) >= most * WORTH_OF_DETAIL);
  return placed(chosen.zones, chosen, width, height);
}

function areaOf({ size, shape }) {
  return size * size * shape.aspect;
}

/** The shape and the number of zones side by side that make the cells largest. */
function bestOf(zones, width, height) {
  const counts = columnCounts(zones.length, width);
  let best = null;
  for (const shape of SHAPES) {
    // Squares only if there is no room for names.
    if (best && shape.aspect === 1) break;
    for (const columns of counts) {
      const found = largest(zones, columns, shape, width, height);
      if (found.size >= shape.least && !(best && areaOf(best) >= areaOf(found))) best = found;
    }
  }
  return best ?? { size: LEAST, columns: counts.at(-1), shape: SHAPES.at(-1) };
}

/** From all details to none: pools within zones, pools one after the other, zones, all nodes; each as list of zones. */
function arrangementsOf(cluster) {
  const groups = groupsOf(cluster);
  const names = [...new Set(groups.map(({ zone }) => zone))];
  const zones = names.map((name) => groups.filter(({ zone }) => zone === name));
  const merged = (members, label) => [{ label, rows: members.flatMap(({ rows }) => rows) }];
  const lists = [
    zones,
    groups.map((group) => [group]),
    zones.map((members) => merged(members, members.length > 1 ? `${members[0].zone || "no zone"}, all pools` : members[0].label)),
    [merged(groups, groups.length > 1 ? "all nodes" : groups[0].label)],
  ];
  const counted = (members) => ({ groups: members, count: members.reduce((sum, { rows }) => sum + rows.length, 0) });
  return lists.map((list) => list.map(counted));
}

/** `[{zone, label, rows}]`, by names of zones, then pools, then nodes. */
function groupsOf(cluster) {
  const { nodes, zones, pools } = cluster;
  const found = new Map();
  for (let row = 0; row < nodes.length; row++) {
    const key = nodes.zone[row] * 65_536 + nodes.pool[row];
    const rows = found.get(key);
    if (rows) rows.push(row);
    else found.set(key, [row]);
  }
  const groups = [...found.values()].map((rows) => {
    const [zone, pool] = [zones[nodes.zone[rows[0]]] ?? "", pools[nodes.pool[rows[0]]] ?? ""];
    rows.sort((one, other) => compare(nodes.name[one], nodes.name[other]));
    return { zone, pool, rows, label: [zone, pool].filter(Boolean).join(" / ") || "all nodes" };
  });
  return groups.sort((one, other) => compare(one.zone, other.zone) || compare(one.pool, other.pool));
}

function compare(one, other) {
  return one < other ? -1 : Number(one > other);
}

/** How many zones may stand side by side; of many zones not every number is tried. */
function columnCounts(zones, width) {
  const most = Math.max(1, Math.min(zones, Math.floor(width / LEAST_ZONE)));
  const step = Math.ceil(most / 12);
  const counts = [];
  for (let columns = 1; columns < most; columns += step) counts.push(columns);
  return [...counts, most];
}

/** Shelves of *columns* zones, each with the width that its share of the nodes takes. */
function shelvesOf(zones, columns, width) {
  const shelves = [];
  for (let begin = 0; begin < zones.length; begin += columns) {
    const members = zones.slice(begin, begin + columns);
    const room = width - GAP * (members.length - 1);
    const least = Math.min(LEAST_ZONE, room / members.length);
    const total = members.reduce((sum, zone) => sum + zone.count, 0);
    const free = room - least * members.length;
    shelves.push(members.map((zone) => ({ zone, width: least + (free * zone.count) / total })));
  }
  return shelves;
}

function heightOf(shelf, cellWidth, cellHeight) {
  let highest = 0;
  for (const { zone, width } of shelf) {
    const perRow = Math.floor(width / cellWidth);
    if (perRow < 1) return Infinity;
    let height = GAP * (zone.groups.length - 1);
    for (const group of zone.groups) height += LABEL + Math.ceil(group.rows.length / perRow) * cellHeight;
    highest = Math.max(highest, height);
  }
  return highest;
}

function heightOfAll(shelves, cellWidth, cellHeight) {
  return shelves.reduce((sum, shelf) => sum + heightOf(shelf, cellWidth, cellHeight) + GAP, -GAP);
}

/** The largest number from *low* to *high* that *fits*; 0 if *low* does not. */
function largestThat(fits, low, high) {
  if (!fits(low)) return 0;
  if (fits(high)) return high;
  while (high - low > 0.05) {
    const middle = (low + high) / 2;
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return low;
}

function largest(zones, columns, shape, width, height) {
  const shelves = shelvesOf(zones, columns, width);
  const fits = (size) => heightOfAll(shelves, size * shape.aspect, size) <= height;
  return { size: largestThat(fits, LEAST, shape.most), columns, shape };
}

/** Places the groups, with cells stretched over the room that whole rows and columns of them leave. */
function placed(zones, { size, columns, shape }, width, height) {
  const shelves = shelvesOf(zones, columns, width);
  const stretched = ({ width: room }) => room / Math.floor(room / (size * shape.aspect));
  const cellWidth = Math.min(...shelves.flat().map(stretched), size * shape.aspect * STRETCH);
  const fits = (cellHeight) => heightOfAll(shelves, cellWidth - 1e-6, cellHeight) <= height;
  const cellHeight = largestThat(fits, size, size * STRETCH) || size;
  const groups = [];
  let top = 0;
  for (const shelf of shelves) {
    let left = 0;
    for (const { zone, width: room } of shelf) {
      // A cell that fills its room to the pixel must not fall out of it by rounding.
      const perRow = Math.max(1, Math.floor(room / cellWidth + 1e-6));
      let y = top;
      for (const { label, rows } of zone.groups) {
        const high = Math.ceil(rows.length / perRow) * cellHeight;
        groups.push({ label, rows, perRow, x: left, y: y + LABEL, width: room, height: high });
        y += LABEL + high + GAP;
      }
      left += room + GAP;
    }
    top += heightOf(shelf, cellWidth - 1e-6, cellHeight) + GAP;
  }
  return { cellWidth, cellHeight, height: top - GAP, groups };
}
