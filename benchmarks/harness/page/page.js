// The charts of the page that one can move in: the roofline and the histories. The rest is there without scripts.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const palette = (i) => colour(`--c${i % 8}`);

  const short = (value) => (value === 0 ? "0" : Number(value.toPrecision(3)).toString());
  const seconds = (value) => {
    for (const [unit, size] of [["s", 1], ["ms", 1e-3], ["us", 1e-6]]) {
      if (value >= size) return `${short(value / size)} ${unit}`;
    }
    return `${short(value / 1e-9)} ns`;
  };

  const axis = (label, values) => ({
    label, values, stroke: colour("--text"), grid: {stroke: colour("--faint"), width: 1},
    ticks: {stroke: colour("--faint"), width: 1}, size: 62, labelSize: 20,
  });
  // Between two powers of ten lines would only get in the way, unless there is hardly more than that.
  const powersOfTen = (plot, splits) => {
    const powers = splits.map((v) => (Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-9 ? v : null));
    return powers.filter((v) => v !== null).length > 1 ? powers : splits;
  };
  const logarithmic = (label, values) => {
    const made = axis(label, (plot, splits) => splits.map((v) => (v === null ? "" : values(v))));
    return {...made, filter: powersOfTen, grid: {...made.grid, filter: powersOfTen},
      ticks: {...made.ticks, filter: powersOfTen}};
  };

  // The text beside the point that is nearest to the pointer, in pixels.
  const tooltip = (points) => {
    const box = document.createElement("div");
    box.className = "tip";
    return {
      hooks: {
        init: [(plot) => plot.over.append(box)],
        setCursor: [(plot) => {
          const {left, top} = plot.cursor;
          let nearest = null, distance = 14;
          for (const p of points) {
            if (plot.series[p.series].show === false) continue;
            const d = Math.hypot(plot.valToPos(p.x, "x") - left, plot.valToPos(p.y, "y") - top);
            if (d < distance) [nearest, distance] = [p, d];
          }
          box.style.display = nearest && left >= 0 ? "block" : "none";
          if (!nearest) return;
          box.textContent = nearest.text;
          const x = plot.valToPos(nearest.x, "x"), y = plot.valToPos(nearest.y, "y");
          box.style.left = `${Math.min(x + 10, Math.max(0, plot.over.clientWidth - box.offsetWidth))}px`;
          box.style.top = `${y > 40 ? y - 34 : y + 12}px`;
        }],
      },
    };
  };

  const width = (place) => Math.max(320, Math.min(860, place.clientWidth));

  const roofline = (place) => {
    const {points, bandwidth, arithmetic} = data.roofline;
    const variants = [...new Set(points.map((p) => p.variant))];
    const first = Math.min(...points.map((p) => p.x)) / 2, last = Math.max(...points.map((p) => p.x)) * 2;
    const ridge = arithmetic / bandwidth;
    const xs = points.map((p) => p.x).concat([first, last], ridge > first && ridge < last ? [ridge] : []);
    xs.sort((a, b) => a - b);
    const columns = variants.map(() => xs.map(() => null));
    const taken = new Set();
    for (const p of points) {
      // Points of one variant that share an intensity get a place each.
      let at = xs.indexOf(p.x);
      const column = variants.indexOf(p.variant);
      while (taken.has(`${column} ${at}`) && xs[at + 1] === p.x) ++at;
      taken.add(`${column} ${at}`);
      columns[column][at] = p.y;
    }
    const marked = points.map((p) => ({
      ...p, series: variants.indexOf(p.variant) + 2,
      text: `${p.name}: ${short(p.y)} GFLOP/s at ${short(p.x)} FLOP per byte, ${short(100 * p.share)}% of the limit`,
    }));
    const roof = xs.map((x) => Math.min(arithmetic, x * bandwidth));
    return new uPlot({
      width: width(place), height: 440, plugins: [tooltip(marked)],
      scales: {x: {time: false, distr: 3}, y: {distr: 3}},
      axes: [{...logarithmic("FLOP per byte", short), size: 40}, logarithmic("GFLOP/s", short)],
      cursor: {points: {show: false}}, legend: {live: false},
      series: [{}, {label: "limit", stroke: colour("--c5"), width: 2, points: {show: false}},
        ...variants.map((label, i) => ({
          label, stroke: palette(i), paths: () => null, points: {show: true, size: 7, fill: palette(i)},
        }))],
    }, [xs, roof, ...columns], place);
  };

  const history = (place, group) => {
    const xs = data.files.map((_, i) => i);
    const series = [{label: "file", value: (plot, i) => (i === null ? "" : data.files[i])}];
    const columns = [], bands = [], marked = [];
    group.variants.forEach((variant, v) => {
      const at = series.length, faint = `${palette(v)}40`;
      columns.push(variant.high, variant.low, variant.middle);
      const hidden = {width: 0, points: {show: false}, stroke: "transparent", class: "hidden"};
      series.push(hidden, hidden, {
        label: variant.name, stroke: palette(v), width: 1.5, points: {show: true, size: 6},
        value: (plot, value) => (value == null ? "" : seconds(value)),
      });
      bands.push({series: [at, at + 1], fill: faint});
      variant.middle.forEach((y, x) => {
        if (y === null) return;
        const range = `${seconds(variant.low[x])} to ${seconds(variant.high[x])}`;
        const text = `${data.files[x]}: ${variant.name} ${seconds(y)}, ${range}`;
        marked.push({x, y, series: at + 2, text});
      });
    });
    return new uPlot({
      title: group.name, width: width(place), height: 260, plugins: [tooltip(marked)], bands,
      scales: {x: {time: false, range: (plot, low, high) => [low - 0.2, high + 0.2]}, y: {distr: 3}},
      axes: [{...axis("", (plot, splits) => splits.map((i) => data.files[i]?.split(" ")[0] ?? "")),
        incrs: [1, 2, 5, 10, 20, 50, 100], size: 30, label: null},
        logarithmic("", seconds)],
      series,
    }, [xs, ...columns], place);
  };

  // The first ones are drawn at once, the others when they come into view: a page may have hundreds.
  const places = [...document.querySelectorAll("[data-chart]")];
  const draw = (place) => {
    place.replaceChildren();
    const index = place.dataset.chart;
    place.plot = index === "roofline" ? roofline(place) : history(place, data.history[Number(index)]);
  };
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      seen.unobserve(entry.target);
      draw(entry.target);
    }
  }, {rootMargin: "400px"});
  places.slice(0, 20).forEach(draw);
  places.slice(20).forEach((place) => seen.observe(place));
  // Canvases keep the colours that they were drawn with.
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const place of places) if (place.plot) draw(place);
  });
  document.documentElement.dataset.charts = String(places.length);
})();
