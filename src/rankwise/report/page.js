"use strict";
(() => {
  const data = JSON.parse(document.getElementById("embedded").textContent);
  const find = (id) => document.getElementById(id);
  const make = (kind, text, className) => {
    const element = document.createElement(kind);
    if (text !== undefined) element.textContent = text;
    if (className) element.className = className;
    return element;
  };
  const write = (value, digits = 4) => {
    if (typeof value === "string") return value;
    if (value === null || value === undefined) return "–";
    const words = Number.isInteger(value) ? value.toLocaleString("en-US", { useGrouping: "min2" }) : String(Number(value.toPrecision(digits)));
    return words.replace("-", "−");
  };
  // The numbers of a column with the same decimals: as many as give the largest four digits.
  const alike = (values) => {
    const largest = Math.max(...values.map(Math.abs));
    const places = largest >= 1e-3 && largest < 1e5 ? Math.max(0, 3 - Math.floor(Math.log10(largest))) : null;
    const rounded = places === null ? values : values.map((value) => Number(value.toFixed(places)) + 0);  // never −0
    return rounded.map((value) =>
      (value > 0 ? "+" : "") + (places === null ? write(value) : value.toFixed(places).replace("-", "−")));
  };

  // There is room for everything on a wide screen.
  const isWide = matchMedia("(min-width: 44rem)").matches;
  document.querySelectorAll("details.wide").forEach((element) => { element.open = isWide; });

  // One tooltip for all charts, kept inside the window.
  const tip = make("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const showTip = (text, x, y) => {
    tip.textContent = text;
    tip.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = tip;
    const edge = document.documentElement.clientWidth;
    tip.style.left = Math.max(4, Math.min(x + 14, edge - width - 8)) + scrollX + "px";
    tip.style.top = (y - height - 12 < 4 ? y + 18 : y - height - 12) + scrollY + "px";
  };
  const hideTip = () => { tip.hidden = true; };

  const surface = find("surface");
  if (surface) {
    const { alphas, steps, values, metric } = data.surface;
    const gap = Number(surface.dataset.gap);
    const says = find("surface-says");
    const choice = says.textContent;
    const rest = () => { says.textContent = choice; cell.hidden = true; };
    const cell = surface.querySelector(".cell");
    const height = alphas.length + gap;
    let row = data.surface.chosen[0];
    let column = data.surface.chosen[1];
    const select = () => {
      const words = `alpha ${alphas[row]}, iteration ${steps[column]}: ${metric} ${write(values[row][column])}`;
      says.textContent = words;
      const top = alphas.length - 1 - row + (row === 0 ? gap : 0);
      Object.assign(cell.style, {
        left: `${(column / steps.length) * 100}%`, width: `${100 / steps.length}%`,
        top: `${(top / height) * 100}%`, height: `${100 / height}%`,
      });
      cell.hidden = false;
      return words;
    };
    surface.addEventListener("pointermove", (event) => {
      const box = surface.getBoundingClientRect();
      const across = (event.clientX - box.left) / box.width;
      const down = ((event.clientY - box.top) / box.height) * height;
      if (across < 0 || across >= 1 || down < 0 || down >= height) return;
      column = Math.floor(across * steps.length);
      row = down >= alphas.length - 1 ? 0 : alphas.length - 1 - Math.floor(down);
      showTip(select().replace(": ", "\n"), event.clientX, event.clientY);
    });
    surface.addEventListener("pointerleave", () => { hideTip(); rest(); });
    surface.addEventListener("focus", select);
    surface.addEventListener("blur", rest);
    surface.addEventListener("keydown", (event) => {
      const move = { ArrowUp: [1, 0], ArrowDown: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (!move) return;
      event.preventDefault();
      row = Math.max(0, Math.min(alphas.length - 1, row + move[0]));
      column = Math.max(0, Math.min(steps.length - 1, column + move[1]));
      select();
    });
  }

  const lines = find("convergence");
  if (lines) {
    const { alphas, steps, values, shown } = data.surface;
    const guide = lines.querySelector(".guide");
    lines.addEventListener("pointermove", (event) => {
      const box = lines.getBoundingClientRect();
      const wanted = steps[0] + ((event.clientX - box.left) / box.width) * (steps[steps.length - 1] - steps[0]);
      let nearest = 0;
      steps.forEach((step, i) => { if (Math.abs(step - wanted) < Math.abs(steps[nearest] - wanted)) nearest = i; });
      const rest = steps[steps.length - 1] - steps[0] || 1;
      guide.style.left = `${((steps[nearest] - steps[0]) / rest) * 100}%`;
      guide.hidden = false;
      const words = shown.map((row) => `alpha ${alphas[row]}: ${write(values[row][nearest])}`);
      showTip([`iteration ${steps[nearest]}`, ...words].join("\n"), event.clientX, event.clientY);
    });
    lines.addEventListener("pointerleave", () => { hideTip(); guide.hidden = true; });
  }

  // The rows of one query as dots on every curve and surface; A and B where they are being compared.
  const markedPicker = find("pick-marked");
  const compared = { query: null, rows: [] };
  const markRows = () => {
    if (!markedPicker) return;
    const query = Number(markedPicker.value);
    document.querySelectorAll("[data-picture]").forEach((frame) => {
      const picture = Number(frame.dataset.picture);
      frame.querySelectorAll(".rowmark").forEach((mark) => mark.remove());
      data.marks[query][picture].forEach(([across, down], i) => {
        const side = compared.query === query ? compared.rows.indexOf(i) : -1;
        const mark = make("span", side < 0 ? undefined : "AB"[side], side < 0 ? "rowmark" : "rowmark picked");
        Object.assign(mark.style, { left: `${across}%`, top: `${down}%` });
        const [name, rank] = data.open[query].rows[i];
        const show = (event) => showTip(`${name}, rank ${rank}`, event.clientX, event.clientY);
        mark.addEventListener("pointerenter", show);
        mark.addEventListener("pointerleave", hideTip);
        frame.append(mark);
      });
    });
  };
  if (markedPicker) {
    data.open.forEach((query, i) => {
      const option = make("option", query.label);
      option.value = i;
      markedPicker.append(option);
    });
    markedPicker.addEventListener("change", markRows);
    document.querySelectorAll("details[data-opened]").forEach((details) => {
      details.addEventListener("toggle", () => {
        if (!details.open) return;
        markedPicker.value = details.dataset.opened;
        markRows();
      });
    });
    markRows();
  }

  // Why is A above B: what each column adds to the difference of the two scores; or to the score of A, without a B.
  const queryPicker = find("pick-query");
  if (queryPicker) {
    const pickers = [find("pick-a"), find("pick-b")];
    const [NAME, RANK, LABEL, SCORE, PARTS, VALUES] = [0, 1, 2, 3, 4, 5];
    const describe = (row) =>
      `rank ${row[RANK]} · ${row[NAME]}` + (row[LABEL] === null ? "" : ` · label ${write(row[LABEL])}`);
    const current = () => data.open[Number(queryPicker.value)];
    const ALONE = "alone";
    const fill = () => {
      pickers.forEach((picker, side) => {
        picker.replaceChildren(...current().rows.map((row, i) => {
          const option = make("option", describe(row));
          option.value = i;
          return option;
        }));
        if (side === 1) {
          const option = make("option", "nothing: A alone");
          option.value = ALONE;
          picker.append(option);
        }
        picker.value = side < current().rows.length ? String(side) : ALONE;
      });
    };
    const explain = () => {
      const query = current();
      const [a, b] = pickers.map((picker) => query.rows[Number(picker.value)]);
      const alone = b === undefined;
      compared.query = Number(queryPicker.value);
      compared.rows = pickers.map((picker) => Number(picker.value));
      if (markedPicker) markedPicker.value = queryPicker.value;
      markRows();
      const difference = a[SCORE] - (alone ? 0 : b[SCORE]);
      const same = a === b;
      const relation = difference > 0 ? "above" : difference < 0 ? "below" : "level with";
      const amount = difference === 0 ? "" : `, by ${write(Math.abs(difference), 3)}`;
      find("why-says").textContent = alone
        ? `A (${a[NAME]}) has the score ${write(a[SCORE])}, at rank ${a[RANK]}: the sum of what follows.`
        : same
        ? `A and B are the same (${a[NAME]}): pick another to compare it with.`
        : `A (${a[NAME]}) stands ${relation} B (${b[NAME]})${amount}.`;
      find("why-direction").textContent = alone ? "lowers ← → raises the score" : "for B ← → for A";
      const parts = query.columns.map((name, j) => ({
        name, add: a[PARTS][j] - (alone ? 0 : b[PARTS][j]), a: a[VALUES][j], b: alone ? undefined : b[VALUES][j],
      }));
      parts.sort((left, right) => Math.abs(right.add) - Math.abs(left.add));
      const told = parts.filter((part) => part.add !== 0).slice(0, 12);
      const rest = difference - told.reduce((sum, part) => sum + part.add, 0);
      // What is left of one score may be a constant, of which a difference has none.
      const constant = alone && Math.abs(rest) > 1e-4 * Math.abs(a[SCORE]);
      if (told.length < data.columns || constant) told.push({ name: null, add: rest });
      const largest = Math.max(...told.map((part) => Math.abs(part.add)), 1e-300);
      const adds = alike(told.map((part) => part.add));
      find("why-rows").replaceChildren(...told.map((part, place) => {
        const line = make("tr");
        const head = make("th");
        head.scope = "row";
        const others = "everything else together";
        head.append(part.name === null ? make("small", alone ? "everything else and the constant" : others) : make("bdi", part.name));
        const bar = make("td", undefined, "w");
        const pull = make("div", undefined, "pull");
        const stripe = make("i", undefined, part.add > 0 ? "up" : "down");
        stripe.style.width = `${(Math.abs(part.add) / largest) * 50}%`;
        pull.append(stripe);
        bar.append(pull);
        const shown = (value) => make("td", value === undefined ? "" : write(value, 3), "n");
        line.append(head, shown(part.a), shown(part.b), make("td", adds[place], "n"), bar);
        return line;
      }));
      document.querySelectorAll("button[data-side]").forEach((button) => {
        const isQuery = button.dataset.query === queryPicker.value;
        const chosen = pickers[Number(button.dataset.side)].value;
        button.setAttribute("aria-pressed", String(isQuery && button.dataset.row === chosen));
      });
    };
    data.open.forEach((query, i) => {
      const option = make("option", query.label);
      option.value = i;
      queryPicker.append(option);
    });
    queryPicker.addEventListener("change", () => { fill(); explain(); });
    pickers.forEach((picker) => picker.addEventListener("change", explain));
    // A press far from the explanation is answered on the spot: the bar says what is compared, and leads down. It follows
    // the button in the page, so that the next Tab reaches it.
    const bar = make("div", undefined, "goto noprint");
    const said = make("span");
    const down = make("a", "Why? ↓");
    const back = find("why-back");
    let pressed = null;
    said.setAttribute("role", "status");
    down.href = "#why";
    bar.append(said, down);
    bar.hidden = true;
    const showBar = (button) => {
      const [a, b] = pickers.map((picker) => current().rows[Number(picker.value)]);
      pressed = button;
      button.parentElement.append(bar);
      bar.hidden = false;
      back.hidden = false;
      const both = `A and B are both ${a[NAME]}: press one of them in another row.`;
      said.textContent = a === b ? both : `A: ${a[NAME]}, B: ${b === undefined ? "nothing" : b[NAME]}`;
      down.hidden = a === b;
    };
    const hideBar = () => { bar.hidden = true; };
    down.addEventListener("click", (event) => {
      event.preventDefault();
      hideBar();
      find("why").scrollIntoView();
      find("why-says").focus({ preventScroll: true });
    });
    back.firstElementChild.addEventListener("click", (event) => {
      event.preventDefault();
      pressed.closest("details").open = true;
      pressed.scrollIntoView({ block: "center" });
      pressed.focus({ preventScroll: true });
    });
    addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || bar.hidden) return;
      if (bar.contains(document.activeElement)) pressed.focus();
      hideBar();
    });
    // Where the explanation is in sight, nothing needs to lead to it.
    new IntersectionObserver((seen) => { if (seen[0].isIntersecting) hideBar(); }).observe(find("why-says"));
    document.querySelectorAll("button[data-side]").forEach((button) => {
      button.hidden = false;
      button.addEventListener("click", () => {
        if (queryPicker.value !== button.dataset.query) {
          queryPicker.value = button.dataset.query;
          fill();
        }
        pickers[Number(button.dataset.side)].value = button.dataset.row;
        explain();
        showBar(button);
      });
    });
    fill();
    explain();
  }

  // Where the clipboard is denied, the command is selected instead, ready to be copied by hand.
  document.querySelectorAll("button.copy").forEach((button) => {
    const code = button.parentElement.querySelector("code");
    const say = (words) => { button.textContent = words; };
    const select = () => { getSelection().selectAllChildren(code); say("Selected"); };
    button.hidden = false;
    button.addEventListener("blur", () => say("Copy"));
    button.addEventListener("click", () => {
      if (!navigator.clipboard) select();
      else navigator.clipboard.writeText(code.textContent).then(() => say("Copied"), select);
    });
  });

  // Paper cannot be clicked: everything is opened for it, and closed again afterwards.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    opened.forEach((element) => { element.open = true; });
  });
  addEventListener("afterprint", () => { opened.forEach((element) => { element.open = false; }); });
})();
