// The name that answers are saved under: typed once in the bar and remembered by this browser, or that of who signed in.
const person = document.getElementById("person");
const personName = () => person?.value.trim() || "not recorded";
const personWords = () => (person?.value.trim() ? `as ${personName()}` : "Write your name first.");

// What was asked for before there was a name, and where the focus was: it is done once the name is there.
const waiting = { action: null, focused: null, timer: 0 };

// What is saved on a server is saved under a name: where none is known, its field says so. Whether it had to.
// again: does what was asked for; it is called when the name was given.
function lacksName(again = null) {
  if (!person || person.value.trim()) { forgetWaiting(); return false; }
  let words = document.getElementById("name-first");
  if (!words) {
    words = document.createElement("span");
    words.id = "name-first"; words.setAttribute("role", "alert");
    person.after(words); // not in its label, which would read them as part of the name of the field
    person.setAttribute("aria-describedby", "name-first");
  }
  words.textContent = again ? "Write your name and press Enter: then it is saved." : "Write your name first, then answer again: what you save is saved under it.";
  Object.assign(waiting, { action: again, focused: document.activeElement });
  person.scrollIntoView({ block: "nearest" });
  person.focus();
  return true;
}

function forgetWaiting() {
  clearTimeout(waiting.timer);
  Object.assign(waiting, { action: null, focused: null });
}

function doWaiting() {
  const { action, focused } = waiting;
  forgetWaiting();
  if (!action) return;
  focused?.focus({ preventScroll: true });
  action();
}

// Who gives no name gives up what they asked for. Who leaves the field for the button itself presses it once, not twice.
function leaveName() {
  if (!waiting.action) return;
  if (!person.value.trim()) { forgetWaiting(); return; }
  clearTimeout(waiting.timer);
  waiting.timer = setTimeout(doWaiting, 400);
}

function onNameKey(event) {
  if (event.key !== "Enter" && event.key !== "Escape") return;
  event.preventDefault(); // or the button that gets the focus back is pressed too
  if (event.key === "Escape") forgetWaiting();
  person.blur();
  if (event.key === "Enter") doWaiting();
}

const signedIn = () => {
  const start = `errata-person-${location.host.split(":").pop()}=`;
  const cookie = document.cookie.split("; ").find((part) => part.startsWith(start));
  return cookie ? decodeURIComponent(cookie.slice(start.length)) : "";
};

try {
  const name = signedIn();
  if (person && name) {
    person.value = name;
    person.readOnly = true;
    person.title = `Signed in as ${name}`;
  }
  if (person && !person.value) person.value = localStorage.getItem("errata-person") ?? "";
  person?.addEventListener("input", () => {
    document.getElementById("name-first")?.remove();
    person.removeAttribute("aria-describedby");
  });
  person?.addEventListener("keydown", onNameKey);
  person?.addEventListener("blur", leaveName);
  person?.addEventListener("change", () => localStorage.setItem("errata-person", person.value.trim()));
} catch { /* private mode: the name lasts for this page */ }
