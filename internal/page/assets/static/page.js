// The page works without this: it adds the updates while a page is looked at, and the slider of the history.
"use strict";

const main = document.getElementById("main");
const live = document.getElementById("live");

// update reads the page again and takes over its content, unless the reader is about to do something with it.
async function update() {
  if (document.hidden || main.contains(document.activeElement) && document.activeElement.matches("input, select")) {
    return;
  }
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, redirect: "manual" });
    if (answer.type === "opaqueredirect") {
      live.textContent = "The session has ended; this is as it was. Load the page again to sign in.";
      return;
    }
    if (!answer.ok) {
      throw new Error(answer.status);
    }
    const read = new DOMParser().parseFromString(await answer.text(), "text/html");
    const focus = document.activeElement?.getAttribute("href");
    main.replaceChildren(...read.getElementById("main").childNodes);
    document.querySelector("footer time").replaceWith(read.querySelector("footer time"));
    if (focus) {
      main.querySelector(`a[href="${CSS.escape(focus)}"]`)?.focus({ preventScroll: true });
    }
    live.textContent = "";
  } catch {
    live.textContent = "controld does not answer; this is as it was.";
  }
}

if (main.dataset.live) {
  setInterval(update, 1000 * main.dataset.live);
}

// The slider counts the states at a time, by the parts of the chart.
const slider = document.getElementById("slider");
if (slider) {
  const [from, to] = [Number(slider.dataset.from), Number(slider.dataset.to)];
  const [shown, cursor] = [slider.parentElement.querySelector("output"), document.getElementById("cursor")];
  const lanes = [...document.querySelectorAll(".chart g")].map((lane) =>
    [...lane.querySelectorAll("rect")].map((rect) => {
      const x = parseFloat(rect.getAttribute("x"));
      return { state: rect.getAttribute("class"), x, end: x + parseFloat(rect.getAttribute("width")) };
    }),
  );
  const show = () => {
    const at = (100 * slider.value) / slider.max;
    const inside = Math.min(at, 99.99); // a part does not cover its end
    const counts = {};
    for (const lane of lanes) {
      const part = lane.findLast((p) => p.x <= inside && inside < p.end);
      if (part) {
        counts[part.state] = (counts[part.state] ?? 0) + 1;
      }
    }
    cursor.setAttribute("x1", `${at}%`);
    cursor.setAttribute("x2", `${at}%`);
    cursor.classList.add("on");
    const time = new Date(from + ((to - from) * at) / 100).toISOString().slice(11, 19);
    const states = Object.entries(counts).sort().map(([state, n]) => `${n} ${state}`);
    shown.textContent = `${time}: ${states.join(", ") || "no host"}`;
  };
  slider.parentElement.hidden = false;
  slider.addEventListener("input", show);
  show();
}
