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
      live.textContent = "The session has ended; showing the last data. Load the page again to sign in.";
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
    live.textContent = "controld does not answer; showing the last data.";
  }
}

if (main.dataset.live) {
  setInterval(update, 1000 * main.dataset.live);
}

// The slider shows how many hosts were in each state at a time, also of those that are on other pages.
const slider = document.getElementById("slider");
if (slider) {
  const [from, to] = [Number(slider.dataset.from), Number(slider.dataset.to)];
  const [shown, cursor] = [slider.parentElement.querySelector("output"), document.getElementById("cursor")];
  const states = slider.dataset.states.split(" ");
  const counts = slider.dataset.counts.split(",").map((count) => count.split(" "));
  const show = () => {
    const at = (100 * slider.value) / slider.max;
    cursor.setAttribute("x1", `${at}%`);
    cursor.setAttribute("x2", `${at}%`);
    cursor.classList.add("on");
    const time = new Date(from + ((to - from) * at) / 100).toISOString().slice(11, 19);
    const hosts = counts[slider.value].map((n, i) => `${n} ${states[i]}`).filter((text) => !text.startsWith("0 "));
    shown.textContent = `${time}: ${hosts.join(", ") || "no host"}`;
  };
  slider.parentElement.hidden = false;
  slider.addEventListener("input", show);
  show();
}
