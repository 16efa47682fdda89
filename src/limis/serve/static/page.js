// Pages work without this script: it only saves loading them anew.
"use strict";

const WAIT = 250; // milliseconds of quiet after a key
const WAIT_FOR_ROWS = 2000;

function query(form) {
  // Only what differs from the row: short addresses, and no change where nothing was changed.
  const asked = new URLSearchParams();
  for (const field of form.elements) {
    if (field.name && field.dataset.own !== field.value) asked.set(field.name, field.value);
  }
  return asked;
}

async function fetchPart(address, signal) {
  const answer = await fetch(address, { signal, headers: { Accept: "text/html" } });
  const text = await answer.text();
  const page = new DOMParser().parseFromString(text, "text/html");
  if (answer.redirected) throw new Error("the page has to be loaded again");
  if (!answer.ok) throw new Error(page.querySelector(".problem")?.textContent || `the server answered ${answer.status}`);
  return page.body.childNodes;
}

function show(place, nodes) {
  place.replaceChildren(...nodes);
}

function showProblem(place, words) {
  const told = document.createElement("p");
  told.className = "problem";
  told.setAttribute("role", "alert");
  told.textContent = words;
  place.replaceChildren(told);
}

function followChanges(form) {
  const place = document.getElementById("changed");
  const heard = document.getElementById("heard");
  let timer = 0;
  let running = null;

  async function update() {
    clearTimeout(timer);
    running?.abort();
    running = new AbortController();
    const { signal } = running;
    for (const field of form.elements) {
      if (field.dataset.own !== undefined) field.classList.toggle("changed", field.dataset.own !== field.value);
    }
    const asked = query(form);
    const differs = asked.toString() !== "";
    history.replaceState(null, "", differs ? `?${asked}` : location.pathname);
    place.setAttribute("aria-busy", "true");
    try {
      show(place, differs ? await fetchPart(`${form.dataset.fragment}?${asked}`, signal) : []);
      heard.textContent = place.querySelector("[data-said]")?.textContent ?? "";
    } catch (error) {
      if (signal.aborted) return;
      showProblem(place, error.message);
    }
    place.removeAttribute("aria-busy");
  }

  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(update, WAIT);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    update();
  });
  document.getElementById("reset").addEventListener("click", (event) => {
    event.preventDefault();
    for (const field of form.elements) if (field.dataset.own !== undefined) field.value = field.dataset.own;
    update();
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-fill]");
    if (!link) return;
    event.preventDefault();
    const wished = new URL(link.href).searchParams;
    for (const field of form.elements) {
      if (field.dataset.own !== undefined) field.value = wished.get(field.name) ?? field.dataset.own;
    }
    update();
    document.getElementById("what-if").focus();
  });
  // What was typed before this script was there has to be answered too.
  const answered = new URLSearchParams(location.search);
  const own = [...form.elements].filter((field) => field.dataset.own !== undefined);
  if (own.some((field) => field.value !== (answered.get(field.name) ?? field.dataset.own))) update();
}

function followSuggestions(form) {
  const place = document.getElementById("suggested");
  const button = form.querySelector("button");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    place.setAttribute("aria-busy", "true");
    place.textContent = "Asking the model about changes…";
    try {
      show(place, await fetchPart(`${form.dataset.fragment}?${new URLSearchParams(new FormData(form))}`));
    } catch (error) {
      showProblem(place, error.message);
    }
    place.removeAttribute("aria-busy");
    button.disabled = false;
    button.focus();
  });
}

async function followRows(note) {
  // Only the note is renewed: whoever fills in the form, or reads, is not disturbed.
  try {
    const answer = await fetch(location.href);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (answer.ok && !page.querySelector("[data-unfinished]")) {
      const link = document.createElement("a");
      link.href = location.href;
      link.textContent = "Show all rows that are explained";
      note.replaceChildren("No more are to come. ", link);
      return;
    }
    if (answer.ok) note.replaceChildren(...page.querySelector("[data-unfinished]").childNodes);
  } catch {
    // The server may be back the next time.
  }
  setTimeout(followRows, WAIT_FOR_ROWS, note);
}

const change = document.getElementById("change");
if (change) followChanges(change);
const suggest = document.getElementById("suggest");
if (suggest) followSuggestions(suggest);
const unfinished = document.querySelector("[data-unfinished]");
if (unfinished) setTimeout(followRows, WAIT_FOR_ROWS, unfinished);
