// The name that answers are saved under: typed once in the bar and remembered by this browser, or that of who signed in.
const person = document.getElementById("person");
const personName = () => person?.value.trim() || "somebody";

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
  person?.addEventListener("change", () => localStorage.setItem("errata-person", person.value.trim()));
} catch { /* private mode: the name lasts for this page */ }
