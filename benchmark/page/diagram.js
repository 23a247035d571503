"use strict";
/* Reliability diagrams of two methods: fine bins merged, seeds pooled, drawn by BokehJS. */
(() => {
  const holder = document.getElementById("diagrams");
  if (holder === null) return;
  const data = JSON.parse(holder.textContent);
  const choices = document.getElementById("choices").elements;
  Bokeh.logger.set_level("warn");  // not every drawing is worth a line on the console
  const LEFT = 64, RIGHT = 14;  // pixels around the frames, the same above each other
  const Z = 1.959963984540054;

  // --- numbers ----------------------------------------------------------------------------------------------------
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const mean = (values) => sum(values) / values.length;
  const deviation = (values) =>
    Math.sqrt(sum(values.map((value) => (value - mean(values)) ** 2)) / (values.length - 1));

  const merge = (seeds, bins) => {
    const merged = Array.from({length: bins}, () => ({rows: 0, confidence: 0, right: 0}));
    for (const [fine, rows, confidence, right] of seeds.flatMap((seed) => seed.bins)) {
      const bin = merged[Math.floor(fine / (data.fine / bins))];
      bin.rows += rows;
      bin.confidence += rows * confidence;
      bin.right += right;
    }
    return merged;
  };
  const total = (bins, name) => sum(bins.map((bin) => bin[name]));
  const topLabelEce = (bins) =>
    100 * sum(bins.map((bin) => Math.abs(bin.right - bin.confidence))) / total(bins, "rows");
  /* Wilson's interval of a share, in percent. */
  const interval = (share, rows) => {
    const middle = (share + Z * Z / (2 * rows)) / (1 + Z * Z / rows);
    const half = Z / (1 + Z * Z / rows) * Math.sqrt(share * (1 - share) / rows + Z * Z / (4 * rows * rows));
    return [100 * (middle - half), 100 * (middle + half)];
  };

  const describe = (method, bins) => {
    const {seeds} = method;
    const pooled = merge(seeds, bins);
    const rows = total(pooled, "rows");
    const drawn = pooled.map((bin, index) => ({...bin, low: 100 * index / bins, high: 100 * (index + 1) / bins}))
      .filter((bin) => bin.rows > 0)
      .map((bin) => {
        const accuracy = bin.right / bin.rows;
        // seeds score the same test rows, so that only one seed's worth of them is independent
        const [least, most] = interval(accuracy, bin.rows / seeds.length);
        return {...bin, accuracy: 100 * accuracy, mean: 100 * bin.confidence / bin.rows, least, most,
          share: 100 * bin.rows / rows};
      });
    return {
      label: method.label, seeds: seeds.length, rows: rows / seeds.length, bins: drawn,
      accuracy: 100 * total(pooled, "right") / rows, confidence: 100 * total(pooled, "confidence") / rows,
      topLabel: seeds.map((seed) => topLabelEce(merge([seed], bins))),
      classwise: seeds.map((seed) => 100 * seed.ece),
      wrong: seeds.map((seed) => seed.wrong_above_90).filter((value) => value !== null).map((value) => 100 * value),
    };
  };

  // --- words ------------------------------------------------------------------------------------------------------
  const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;
  const spread = (values) => {
    if (values.length === 0) return "–";
    const text = mean(values).toFixed(2);
    return values.length > 1 ? `${text} ± ${deviation(values).toFixed(2)}` : text;
  };
  const count = (value) => Math.round(value).toLocaleString("en");
  const verdict = (side) => {
    const gap = side.confidence - side.accuracy;
    return `${side.label} is ${gap < 0 ? "under" : "over"}-confident by ${Math.abs(gap).toFixed(2)} points on average, `
      + `its top-label ECE is ${spread(side.topLabel)}, its class-wise ECE ${spread(side.classwise)}.`;
  };
  const element = (name, text, attributes = {}) => {
    const made = document.createElement(name);
    made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const tableRow = (head, cells) => {
    const row = document.createElement("tr");
    row.append(element("th", head, {scope: "row"}), ...cells.map((text) => element("td", text)));
    return row;
  };
  const write = (sides) => {
    const setting = data.settings[choices.setting.value].label;
    document.getElementById("summary").textContent = `${setting}, ${choices.bins.value} bins. ${sides.map(verdict).join(" ")}`;
    for (const [index, id] of ["left", "right"].entries()) {
      const side = sides[index];
      const caption = document.querySelector(`#${id} figcaption`);
      document.querySelector(`#${id} .plot`).setAttribute("aria-label", `Reliability diagram. ${verdict(side)}`);
      caption.replaceChildren(`${side.label} `, element("span", `${setting}, top-label ECE ${spread(side.topLabel)}`));
    }
    writeScores();
    writeBins(sides);
  };
  const writeScores = () => {
    const scores = document.getElementById("scores");
    const columns = [
      ["Accuracy", (side) => side.accuracy.toFixed(2)],
      ["Mean confidence", (side) => side.confidence.toFixed(2)],
      ["Difference", (side) => signed(side.confidence - side.accuracy)],
      [`Top-label ECE, ${choices.bins.value} bins`, (side) => spread(side.topLabel)],
      [`Class-wise ECE, ${data.stored_bins} bins`, (side) => spread(side.classwise)],
      ["Wrong, of rows above 90 % confidence", (side) => spread(side.wrong)],
      ["Test rows", (side) => count(side.rows)],
      ["Seeds", (side) => String(side.seeds)],
    ];
    const head = document.createElement("tr");
    head.append(...["Method", ...columns.map(([name]) => name)].map((text) => element("th", text, {scope: "col"})));
    scores.tHead.replaceChildren(head);
    const drawn = [choices.left.value, choices.right.value];
    scores.tBodies[0].replaceChildren(...data.settings[choices.setting.value].methods.map((method, index) => {
      const side = describe(method, Number(choices.bins.value));
      const row = tableRow(side.label, columns.map(([, text]) => text(side)));
      row.classList.toggle("drawn", drawn.includes(String(index)));
      return row;
    }));
  };
  const writeBins = (sides) => {
    const table = document.getElementById("bins");
    const head = document.createElement("tr");
    head.append(...["Confidence, %", ...sides.flatMap((side) =>
      ["rows", "confidence", "accuracy"].map((what) => `${side.label} ${what}`))]
      .map((text) => element("th", text, {scope: "col"})));
    table.tHead.replaceChildren(head);
    const bins = Number(choices.bins.value);
    table.tBodies[0].replaceChildren(...Array.from({length: bins}, (_, index) => {
      const low = 100 * index / bins;
      const cells = sides.flatMap((side) => {
        const bin = side.bins.find((one) => one.low === low);
        return bin ? [count(bin.rows), bin.mean.toFixed(1), bin.accuracy.toFixed(1)] : ["0", "–", "–"];
      });
      return tableRow(`${low.toFixed(1)} to ${(100 * (index + 1) / bins).toFixed(1)}`, cells);
    }));
  };

  // --- drawing ----------------------------------------------------------------------------------------------------
  const colour = (variable) => {  // light-dark() is resolved only where it is used as a colour
    const probe = document.createElement("i");
    probe.style.color = `var(${variable})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };
  const frame = (width, height, foot, yLabel, yRange, colours) => {
    const plot = Bokeh.Plotting.figure({
      width, height, x_range: [0, 100], y_range: yRange, toolbar_location: null, tools: [], output_backend: "svg",
      min_border_left: LEFT, min_border_right: RIGHT, min_border_top: 8, min_border_bottom: foot,
      background_fill_color: null, border_fill_color: null, outline_line_color: colours.rule,
    });
    for (const axis of [plot.xaxis, plot.yaxis]) {
      axis.axis_line_color = axis.major_tick_line_color = colours.rule;
      axis.minor_tick_line_color = null;
      axis.major_label_text_color = axis.axis_label_text_color = colours.quiet;
      axis.major_label_text_font_size = axis.axis_label_text_font_size = "13px";
      axis.axis_label_text_font_style = "normal";
      axis.major_label_text_font = axis.axis_label_text_font = getComputedStyle(document.body).fontFamily;
    }
    plot.yaxis.axis_label = yLabel;
    plot.xgrid.grid_line_color = plot.ygrid.grid_line_color = colours.grid;
    return plot;
  };
  const source = (columns) => new Bokeh.ColumnDataSource({data: columns});
  const hover = (plot, renderer) => plot.add_tools(new Bokeh.HoverTool({
    renderers: [renderer], mode: "vline", point_policy: "follow_mouse", show_arrow: false,
    // BokehJS's box is white in either scheme
    tooltips: '<div style="color: #1b1d1f; font-size: 13px"><b>confidence @range</b><br>@rows rows<br>'
      + "mean confidence @mean<br>accuracy @accuracy</div>",
  }));
  const columnsOf = (bins) => ({
    left: bins.map((bin) => bin.low), right: bins.map((bin) => bin.high),
    top: bins.map((bin) => bin.accuracy), share: bins.map((bin) => bin.share),
    bottom: bins.map(() => 0), ceiling: bins.map(() => 100), x: bins.map((bin) => bin.mean),
    least: bins.map((bin) => bin.least), most: bins.map((bin) => bin.most),
    range: bins.map((bin) => `${bin.low.toFixed(1)} to ${bin.high.toFixed(1)} %`),
    rows: bins.map((bin) => count(bin.rows)), mean: bins.map((bin) => `${bin.mean.toFixed(1)} %`),
    accuracy: bins.map((bin) =>
      `${bin.accuracy.toFixed(1)} % (${bin.least.toFixed(1)} to ${bin.most.toFixed(1)})`),
  });
  const box = (top, bottom) => ({
    left: {field: "left"}, right: {field: "right"}, top: {field: top}, bottom: {field: bottom},
  });
  const gaps = (plot, bins, fill, paper, pattern) => {
    const columns = {
      left: bins.map((bin) => bin.low), right: bins.map((bin) => bin.high),
      top: bins.map((bin) => Math.max(bin.mean, bin.accuracy)),
      bottom: bins.map((bin) => Math.min(bin.mean, bin.accuracy)),
    };
    plot.quad({...box("top", "bottom"), source: source(columns), fill_color: paper, line_color: fill,
      line_width: 1.5, hatch_pattern: pattern, hatch_color: fill, hatch_alpha: 1, hatch_scale: 7, hatch_weight: 1.5});
  };
  const bars = (side, width, colours) => {
    const plot = frame(width, width - LEFT - RIGHT + 26 + 8, 26, "accuracy, %", [0, 100], colours);
    const columns = source(columnsOf(side.bins));
    plot.quad({...box("top", "bottom"), source: columns, fill_color: colours.accuracy, line_color: colours.paper});
    gaps(plot, side.bins.filter((bin) => bin.mean > bin.accuracy), colours.over, colours.paper, "right_diagonal_line");
    gaps(plot, side.bins.filter((bin) => bin.mean < bin.accuracy), colours.under, colours.paper, "left_diagonal_line");
    plot.line([0, 100], [0, 100], {line_color: colours.quiet, line_dash: [6, 4], line_width: 1.5});
    plot.segment({x0: {field: "x"}, x1: {field: "x"}, y0: {field: "least"}, y1: {field: "most"}, source: columns,
      line_color: colours.ink, line_width: 1.5});
    plot.scatter({x: {field: "x"}, y: {field: "top"}, source: columns, size: 5, fill_color: colours.ink,
      line_color: null});
    const whole = plot.quad({...box("ceiling", "bottom"), source: columns, fill_alpha: 0, line_alpha: 0});
    hover(plot, whole);
    return plot;
  };
  const histogram = (side, width, most, colours) => {
    const plot = frame(width, 160, 44, "rows, %", [0, most], colours);
    const columns = source(columnsOf(side.bins));
    const shown = plot.quad({...box("share", "bottom"), source: columns, fill_color: colours.rows,
      line_color: colours.paper});
    const across = (value, settings) => plot.line([value, value], [0, most], {line_width: 2.5, ...settings});
    across(side.accuracy, {line_color: colours.meanAccuracy});
    across(side.confidence, {line_color: colours.over, line_dash: [4, 3]});
    plot.xaxis.axis_label = "confidence, %";
    hover(plot, shown);
    return plot;
  };

  const drawn = [];  // what stands on the page, to be taken off before the next drawing
  const show = async (plot, place) => {
    place.replaceChildren();
    await Bokeh.Plotting.show(plot, place);
    drawn.push(plot);
  };
  const draw = async (sides) => {
    for (const plot of drawn.splice(0)) plot.document?.clear();
    const colours = {
      ink: colour("--ink"), quiet: colour("--quiet"), paper: colour("--paper"), rule: colour("--rule"),
      grid: colour("--grid"), accuracy: colour("--accuracy"), over: colour("--over"), under: colour("--under"),
      rows: colour("--rows"), meanAccuracy: colour("--mean-accuracy"),
    };
    const width = Math.min(520, Math.floor(document.getElementById("left").clientWidth));
    const most = Math.min(100, 1.08 * Math.max(...sides.flatMap((side) => side.bins.map((bin) => bin.share))));
    const places = ["left", "right"].map((id) => document.querySelector(`#${id} .plot`));
    await Promise.all(sides.flatMap((side, index) => [
      show(bars(side, width, colours), places[index].querySelector(".bars")),
      show(histogram(side, width, most, colours), places[index].querySelector(".histogram")),
    ]));
  };

  // --- choices ----------------------------------------------------------------------------------------------------
  const offerMethods = (select, fallback) => {
    const labels = data.settings[choices.setting.value].methods.map((method) => method.label);
    const before = select.selectedOptions[0]?.textContent;
    select.replaceChildren(...labels.map((label, index) => element("option", label, {value: index})));
    const kept = labels.indexOf(before);
    select.value = String(kept < 0 ? Math.min(fallback, labels.length - 1) : kept);
  };
  const redraw = async () => {
    const {methods} = data.settings[choices.setting.value];
    const sides = [choices.left, choices.right].map((select) =>
      describe(methods[select.value], Number(choices.bins.value)));
    write(sides);
    await draw(sides);
  };
  let wanted = 0, made = 0, busy = false;
  const update = async () => {  // one drawing at a time; of choices made meanwhile only the last is drawn
    wanted += 1;
    if (busy) return;
    busy = true;
    while (made !== wanted) {
      made = wanted;
      await redraw();
    }
    busy = false;
    const section = document.getElementById("reliability");
    section.dataset.drawn = document.documentElement.dataset.scheme;
    section.dataset.drawings = String(made);
  };
  const offerAll = () => {
    offerMethods(choices.left, 0);
    offerMethods(choices.right, data.settings[choices.setting.value].compared);
  };
  choices.setting.addEventListener("change", offerAll);
  for (const select of choices) select.addEventListener("change", update);
  document.addEventListener("scheme", update);
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth !== width) update();
    width = window.innerWidth;
  });
  offerAll();
  update();
})();
