// The name that answers are saved under: typed once in the bar and remembered by this browser, or that of who signed in.
const person = document.getElementById("person");
const personName = () => person?.value.trim() || "not recorded";
const personWords = () => (person?.value.trim() ? `as ${personName()}` : "Write your name first.");

// What is saved on a server is saved under a name: where none is known, its field says so. Whether it had to.
function lacksName() {
  if (!person || person.value.trim()) return false;
  let words = document.getElementById("name-first");
  if (!words) {
    words = document.createElement("span");
    words.id = "name-first"; words.setAttribute("role", "alert");
    person.after(words); // not in its label, which would read them as part of the name of the field
    person.setAttribute("aria-describedby", "name-first");
  }
  words.textContent = "Write your name first: what you save is saved under it.";
  person.scrollIntoView({ block: "nearest" });
  person.focus();
  return true;
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
  person?.addEventListener("keydown", (event) => { if (event.key === "Enter") person.blur(); });
  person?.addEventListener("change", () => localStorage.setItem("errata-person", person.value.trim()));
} catch { /* private mode: the name lasts for this page */ }
